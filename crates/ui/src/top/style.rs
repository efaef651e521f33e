//! Lines of text with tones: what the views are made of, before a terminal gives them colours or none.

use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};
use unicode_width::UnicodeWidthStr;

use super::text::Abilities;
use crate::health::Health;

/// What a piece of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Faint,
    Label,
    Good,
    Going,
    Bad,
}

impl Tone {
    pub(crate) fn of(health: Health) -> Self {
        match health {
            Health::Current => Self::Good,
            Health::InProgress | Health::Terminating => Self::Going,
            Health::Failed => Self::Bad,
            Health::NotFound | Health::Unknown => Self::Faint,
        }
    }

    fn style(self, abilities: Abilities) -> Style {
        let style = Style::new();
        let bold = style.add_modifier(Modifier::BOLD);
        match (self, abilities.colour) {
            (Self::Plain, _) => style,
            (Self::Strong, _) => bold,
            (Self::Faint, true) => style.fg(Color::DarkGray),
            (Self::Label, true) => style.fg(Color::Cyan),
            (Self::Good, true) => style.fg(Color::Green),
            (Self::Going, true) => style.fg(Color::Yellow),
            (Self::Bad, true) => bold.fg(Color::Red),
            (Self::Bad, false) => bold,
            (Self::Faint | Self::Label | Self::Good | Self::Going, false) => style,
        }
    }
}

/// A line in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    /// With one more piece; whatever the text is, it is only shown.
    pub(crate) fn and(mut self, tone: Tone, text: impl AsRef<str>) -> Self {
        self.0.push((tone, text.as_ref().to_owned()));
        self
    }

    pub(crate) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self::default().and(tone, text)
    }

    /// As it is shown where nothing but text is.
    pub(crate) fn plain(&self, abilities: Abilities) -> String {
        self.0.iter().map(|(_, text)| abilities.line(text)).collect::<String>().trim_end().to_owned()
    }

    /// Draws it into a row of an area, and returns the column behind it.
    pub(crate) fn draw(&self, buffer: &mut Buffer, area: Rect, row: u16, abilities: Abilities) -> u16 {
        let (mut x, y) = (area.x, area.y + row);
        if row >= area.height {
            return x;
        }
        for (tone, text) in &self.0 {
            let left = area.right().saturating_sub(x);
            let text = abilities.fit(&abilities.line(text), usize::from(left));
            x = buffer.set_stringn(x, y, text, usize::from(left), tone.style(abilities)).0;
        }
        x
    }

    /// How wide it is.
    pub(crate) fn width(&self, abilities: Abilities) -> usize {
        self.0.iter().map(|(_, text)| abilities.line(text).width()).sum()
    }
}

/// Turns a row around: the one that is chosen.
pub(crate) fn choose(buffer: &mut Buffer, area: Rect, row: u16) {
    let area = Rect { x: area.x, y: area.y + row, width: area.width, height: 1 };
    buffer.set_style(area.intersection(buffer.area), Style::new().add_modifier(Modifier::REVERSED));
}
