//! The screen: what is known enters, cells leave. Pure but for the number of rows that it remembers.

use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
};
use unicode_width::UnicodeWidthStr;

use super::{
    model::{Model, Part},
    parts,
    picker::Picker,
    style::{Line, Tone, choose},
    text::Abilities,
};
use crate::{health::Health, tree::Branch};

/// Below this height there is no room for the tree and a part of an object at once.
const LOW: u16 = 14;
/// From this width on they are side by side.
const WIDE: u16 = 120;

/// The keys, as the bottom says them.
const KEYS: [(&str, &str); 11] = [
    ("up/down", "move"),
    ("left/right", "fold"),
    ("Enter", "open"),
    ("Tab", "runs/events/log"),
    ("J/K", "scroll"),
    ("/", "name"),
    ("t", "kind"),
    ("n", "namespace"),
    ("s", "health"),
    ("a", "all kinds"),
    ("q", "quit"),
];
const ZOOMED: [(&str, &str); 4] =
    [("up/down", "scroll"), ("left/right", "runs/events/log"), ("Esc", "back"), ("q", "quit")];
const TYPING: [(&str, &str); 2] = [("Enter", "keep"), ("Esc", "clear")];
const PICKING: [(&str, &str); 4] =
    [("up/down", "move"), ("a-z", "find"), ("Enter", "choose"), ("Esc", "leave")];

/// Draws everything.
pub(crate) fn draw(model: &mut Model, buffer: &mut Buffer, abilities: Abilities) {
    let area = buffer.area;
    if area.width < 4 || area.height < 3 {
        return;
    }
    let keys: &[(&str, &str)] = match model {
        Model { picker: Some(_), .. } => &PICKING,
        Model { typing: true, .. } => &TYPING,
        Model { zoomed: true, .. } => &ZOOMED,
        _ => &KEYS,
    };
    let keys = wrap(keys, usize::from(area.width), abilities);
    let below = (keys.len() as u16).min(area.height / 3);
    head(model, buffer, area, abilities);
    for (row, line) in keys.iter().take(usize::from(below)).enumerate() {
        line.draw(buffer, area, area.height - below + row as u16, abilities);
    }
    let body = Rect { y: area.y + 1, height: area.height - 1 - below, ..area };
    let (tree, part) = split(body, model.zoomed);
    model.page = usize::from(if model.zoomed { part.height } else { tree.height }).saturating_sub(2);
    if tree.height > 0 {
        rows(model, buffer, tree, abilities);
    }
    if part.height > 0 {
        object(model, buffer, part, abilities);
    }
    if let Some(picker) = &model.picker {
        pick(picker, buffer, body, abilities);
    }
}

/// Where the tree is, and where the chosen object.
fn split(body: Rect, zoomed: bool) -> (Rect, Rect) {
    let none = Rect { height: 0, ..body };
    if zoomed {
        return (none, body);
    }
    if body.height < LOW {
        return (body, none);
    }
    if body.width >= WIDE {
        let half = body.width / 2;
        let right = Rect { x: body.x + half + 1, width: body.width - half - 1, ..body };
        return (Rect { width: half, ..body }, right);
    }
    let upper = body.height * 3 / 5;
    (Rect { height: upper, ..body }, Rect { y: body.y + upper, height: body.height - upper, ..body })
}

/// The keys in as many lines as they need.
fn wrap(keys: &[(&str, &str)], width: usize, abilities: Abilities) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    for (key, what) in keys {
        let line = lines.last_mut().expect("there is one at least");
        let used = line.width(abilities);
        if used > 0 && used + 3 + key.len() + what.len() > width {
            lines.push(Line::new(Tone::Label, key).and(Tone::Faint, format!(" {what}")));
        } else {
            let gap = if used > 0 { "  " } else { "" };
            *line = std::mem::take(line)
                .and(Tone::Plain, gap)
                .and(Tone::Label, key)
                .and(Tone::Faint, format!(" {what}"));
        }
    }
    lines
}

/// The cluster, how many objects are how, and what is filtered.
fn head(model: &Model, buffer: &mut Buffer, area: Rect, abilities: Abilities) {
    let name = if model.cluster.is_empty() { "windlass" } else { &model.cluster };
    let mut line = Line::new(Tone::Strong, name);
    let shown: Vec<&crate::row::Row> = model
        .rows
        .values()
        .filter(|row| model.filter.everything || model.kinds.get(row.kind).is_some_and(|kind| kind.workload))
        .collect();
    for health in [Health::Failed, Health::InProgress, Health::Terminating, Health::Current] {
        let count = shown.iter().filter(|row| row.health == health).count();
        if count > 0 {
            line = line.and(Tone::of(health), format!("  {}{count}", abilities.mark(health)));
        }
    }
    if !model.whole {
        line = line.and(Tone::Going, "  reading");
    }
    if model.unreadable > 0 {
        line = line.and(Tone::Bad, format!("  {} kinds cannot be read", model.unreadable));
    }
    let filter = &model.filter;
    let mut filters = Vec::new();
    if !filter.kind.is_empty() {
        filters.push(filter.kind.clone());
    }
    if !filter.namespace.is_empty() {
        filters.push(format!("in {}", filter.namespace));
    }
    if let Some(health) = filter.health {
        filters.push(word(health).to_owned());
    }
    if model.typing || !filter.text.is_empty() {
        filters.push(format!("/{}{}", filter.text, if model.typing { "_" } else { "" }));
    }
    if filter.everything {
        filters.push("all kinds".into());
    }
    if !filters.is_empty() {
        line = line.and(Tone::Label, format!("  {}", filters.join("  ")));
    }
    line.draw(buffer, area, 0, abilities);
}

/// A health in a word.
pub(crate) fn word(health: Health) -> &'static str {
    match health {
        Health::Current => "current",
        Health::InProgress => "in progress",
        Health::Failed => "failed",
        Health::Terminating => "terminating",
        Health::NotFound => "not found",
        Health::Unknown => "unknown",
    }
}

/// One object of the tree, as a line.
pub(crate) fn branch(branch: &Branch<'_>, abilities: Abilities) -> Line {
    let Branch { row, kind, depth, parent, open, dim } = branch;
    let name = match (*dim, kind.custom) {
        (true, _) => Tone::Faint,
        (false, true) => Tone::Strong,
        (false, false) => Tone::Plain,
    };
    let mut line = Line::new(Tone::Plain, "  ".repeat((*depth).min(12)))
        .and(Tone::Faint, format!("{} ", abilities.twist(*parent, *open)))
        .and(Tone::of(row.health), format!("{} ", abilities.mark(row.health)))
        .and(Tone::Faint, format!("{} ", kind.kind))
        .and(name, &row.name);
    if !row.namespace.is_empty() {
        line = line.and(Tone::Faint, format!("  {}", row.namespace));
    }
    if row.health != Health::Current && !row.message.is_empty() {
        line = line.and(Tone::of(row.health), format!("  {}", row.message));
    }
    line
}

fn rows(model: &Model, buffer: &mut Buffer, area: Rect, abilities: Abilities) {
    let branches = model.branches();
    if branches.is_empty() && model.whole {
        let text =
            if model.filter.is_set() { "Nothing matches; Esc shows all." } else { "Nothing here yet." };
        Line::new(Tone::Faint, text).draw(buffer, area, 0, abilities);
    }
    let height = usize::from(area.height);
    let first = model.place.saturating_sub(height / 2).min(branches.len().saturating_sub(height));
    let text = Rect { width: area.width.saturating_sub(5), ..area };
    for (row, found) in branches.iter().skip(first).take(height).enumerate() {
        let row = row as u16;
        branch(found, abilities).draw(buffer, text, row, abilities);
        let old =
            if found.row.created > 0 { parts::age(model.now - found.row.created) } else { String::new() };
        let at = Rect { x: text.right(), width: area.width - text.width, ..area };
        Line::new(Tone::Faint, format!("{old:>5}")).draw(buffer, at, row, abilities);
        if first + usize::from(row) == model.place {
            choose(buffer, area, row);
        }
    }
}

/// The chosen object: its name, the parts that there are, and the lines of one.
fn object(model: &mut Model, buffer: &mut Buffer, area: Rect, abilities: Abilities) {
    let shown = model.shown();
    let mut title = Line::default();
    for part in model.parts() {
        let word = format!(" {} ", part.word());
        title = title.and(if part == shown { Tone::Strong } else { Tone::Faint }, word);
    }
    let end = title.draw(buffer, area, 0, abilities);
    if let Some((row, target)) = model.target().filter(|_| shown != Part::Output) {
        let name = format!(" {} {}", target.kind.kind, row.name);
        let left = Rect { x: end, width: area.right().saturating_sub(end), ..area };
        Line::new(Tone::Faint, name).draw(buffer, left, 0, abilities);
    }
    let whole = Rect { height: 1, ..area };
    buffer.set_style(whole, Style::new().add_modifier(Modifier::UNDERLINED));
    let lines = content(model, shown);
    let room = usize::from(area.height).saturating_sub(1);
    let most = lines.len().saturating_sub(room);
    model.scrolled = model.scrolled.min(most);
    // What grows is read at its end, unless somebody has scrolled.
    let grows = matches!(shown, Part::Log | Part::Output) && !model.zoomed && model.scrolled == 0;
    let from = if grows { most } else { model.scrolled };
    for (row, line) in lines.iter().skip(from).take(room).enumerate() {
        line.draw(buffer, area, row as u16 + 1, abilities);
    }
}

fn content(model: &Model, shown: Part) -> Vec<Line> {
    match shown {
        Part::Output => model.output.iter().map(|line| Line::new(Tone::Plain, line)).collect(),
        Part::Runs => match model.target() {
            Some((_, target)) => parts::runs(&model.runs, &model.queue, &target, model.now),
            None => Vec::new(),
        },
        _ => match &model.loaded {
            Some(loaded) if Some(&loaded.uid) == model.chosen.as_ref() && loaded.part == shown => {
                loaded.lines.clone()
            }
            _ => Vec::new(),
        },
    }
}

fn pick(picker: &Picker, buffer: &mut Buffer, body: Rect, abilities: Abilities) {
    let choices = picker.choices();
    let widest = choices.iter().map(|name| name.width()).max().unwrap_or(0).max(20) as u16;
    let width = (widest + 4).min(body.width);
    let height = (choices.len() as u16 + 1).min(body.height);
    let area = Rect { x: body.right() - width, y: body.y, width, height };
    for row in 0..height {
        let blank = " ".repeat(usize::from(width));
        buffer.set_stringn(area.x, area.y + row, blank, usize::from(width), Style::reset());
    }
    let title = if picker.kinds { "kind" } else { "namespace" };
    Line::new(Tone::Label, format!(" {title}: "))
        .and(Tone::Strong, format!("{}_", picker.typed))
        .draw(buffer, area, 0, abilities);
    let room = usize::from(height.saturating_sub(1)).max(1);
    let first = picker.at.saturating_sub(room - 1);
    for (row, name) in choices.iter().skip(first).take(room).enumerate() {
        let name = if name.is_empty() { "(all)" } else { name };
        Line::new(Tone::Plain, format!(" {name}")).draw(buffer, area, row as u16 + 1, abilities);
        if first + row == picker.at {
            choose(buffer, area, row as u16 + 1);
        }
    }
}
