//! The views, drawn on ratatui's own test terminal.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ratatui_core::{backend::TestBackend, style::Color, terminal::Terminal};
use unicode_width::UnicodeWidthStr;

use super::{
    Abilities,
    draw::draw,
    key::Key,
    model::{Asked, Loaded, Model, Part},
    style::{Line, Tone},
};
use crate::{health::Health, index::Update, kinds::Kind, row::Row, runs::Numbered};

const FULL: Abilities = Abilities { unicode: true, colour: true };
const BARE: Abilities = Abilities { unicode: false, colour: false };

fn kind(group: &str, name: &str, custom: bool) -> Kind {
    Kind {
        group: group.into(),
        version: "v1".into(),
        kind: name.into(),
        plural: format!("{}s", name.to_lowercase()),
        namespaced: true,
        custom,
        workload: name != "Secret",
    }
}

fn row(uid: &str, kind: usize, name: &str, owner: &str, health: Health, message: &str) -> Row {
    Row {
        uid: uid.into(),
        kind,
        namespace: "default".into(),
        name: name.into(),
        health,
        message: message.into(),
        owner: owner.into(),
        created: 1000,
        revision: "1".into(),
    }
}

fn model(rows: Vec<Row>) -> Model {
    let kinds = vec![
        kind("example.org", "Demo", true),
        kind("apps", "Deployment", false),
        kind("", "Pod", false),
        kind("", "Secret", false),
    ];
    let mut model = Model { cluster: "windlass".into(), now: 1180, has_operators: true, ..Model::default() };
    model.update(Update { reset: true, kinds, put: rows, whole: true, ..Update::default() });
    model
}

fn demo() -> Model {
    model(vec![
        row("1", 0, "shop", "", Health::InProgress, "2 of 3 replicas are ready"),
        row("2", 1, "shop", "1", Health::InProgress, "2 of 3 are available"),
        row("3", 2, "shop-a", "2", Health::Current, ""),
        row("4", 2, "shop-b", "2", Health::Failed, "CrashLoopBackOff"),
        row("5", 3, "hidden", "", Health::Current, ""),
    ])
}

fn shown(model: &mut Model, width: u16, height: u16, abilities: Abilities) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(model, frame.buffer_mut(), abilities)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        let mut text = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            x += symbol.width().max(1) as u16;
        }
        text.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

#[test]
fn sixty_columns_without_colours_and_unicode_show_the_tree_the_events_and_the_keys() {
    let mut model = demo();
    model.part = Part::Events;
    let lines = vec![Line::new(Tone::Bad, "BackOff  ").and(Tone::Plain, "restarting")];
    model.loaded = Some(Loaded { uid: "1".into(), part: Part::Events, lines });
    let screen = shown(&mut model, 60, 20, BARE);
    let expected = [
        "windlass  !1  ~2  +1",
        "v ~ Demo shop  default  2 of 3 replicas are ready         3m",
        "  v ~ Deployment shop  default  2 of 3 are available      3m",
        "      + Pod shop-a  default                               3m",
        "      ! Pod shop-b  default  CrashLoopBackOff             3m",
    ];
    assert_eq!(screen[..5], expected, "{screen:#?}");
    assert!(screen.iter().any(|line| line.starts_with(" runs  events  yaml  Demo shop")), "{screen:#?}");
    assert!(screen.iter().any(|line| line == "BackOff  restarting"), "{screen:#?}");
    assert!(screen[19].contains("q quit"), "{screen:#?}");
    assert!(screen.iter().all(|line| line.is_ascii()), "{screen:#?}");
}

#[test]
fn colours_are_never_all_that_tells_a_health() {
    let draw_cells = |abilities| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let mut model = demo();
        terminal.draw(|frame| draw(&mut model, frame.buffer_mut(), abilities)).unwrap();
        terminal.backend().buffer().clone()
    };
    let (with, without) = (draw_cells(FULL), draw_cells(Abilities { colour: false, ..FULL }));
    assert!(with.content().iter().any(|cell| cell.fg == Color::Red));
    assert!(without.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let text = |cells: &ratatui_core::buffer::Buffer| {
        cells.content().iter().map(|cell| cell.symbol().to_owned()).collect::<String>()
    };
    assert_eq!(text(&with), text(&without));
    assert!(text(&without).contains('\u{2717}') && text(&without).contains('\u{2713}'));
}

#[test]
fn keys_move_fold_filter_and_quit() {
    let mut model = demo();
    let names = |model: &Model| -> Vec<String> {
        model.branches().iter().map(|branch| branch.row.name.to_string()).collect()
    };
    assert_eq!(model.chosen.as_deref(), Some("1"));
    model.press(Key::Down);
    assert_eq!(model.chosen.as_deref(), Some("2"));
    model.press(Key::Left);
    assert_eq!(names(&model), ["shop", "shop"]);
    model.press(Key::Left);
    assert_eq!(model.chosen.as_deref(), Some("1"), "to the owner");
    model.press(Key::End);
    model.press(Key::Right);
    model.press(Key::Character('s'));
    assert_eq!(model.filter.health, Some(Health::Failed));
    assert_eq!(names(&model), ["shop", "shop", "shop-b"]);
    model.press(Key::Escape);
    for key in ['/', 's', 'H', 'o', 'p', '-', 'a'] {
        model.press(Key::Character(key));
    }
    assert_eq!((model.filter.text.as_str(), names(&model).last().unwrap().as_str()), ("shop-a", "shop-a"));
    // What is typed is no command.
    model.press(Key::Character('q'));
    model.press(Key::Escape);
    model.press(Key::Character('t'));
    for key in ['d', 'e', 'p'] {
        model.press(Key::Character(key));
    }
    model.press(Key::Enter);
    assert_eq!(model.filter.kind, "deployments.apps");
    model.press(Key::Escape);
    model.press(Key::Character('a'));
    assert!(names(&model).contains(&"hidden".to_owned()));
    model.press(Key::Character('n'));
    model.press(Key::Down);
    model.press(Key::Enter);
    assert_eq!(model.filter.namespace, "default");
    assert_eq!(model.press(Key::Character('q')), Asked::Quit);
    assert_eq!(model.press(Key::Interrupt), Asked::Quit);
}

#[test]
fn the_runs_of_the_chosen_object_are_shown_with_their_requests() {
    let mut model = demo();
    let recorded = serde_json::json!({
        "controller": "demo", "resource": "demos.example.org", "namespace": "default", "name": "shop",
        "began": "1970-01-01T00:19:00Z", "outcome": "error", "ran": 1500, "waited": 20, "next": 2_000_000,
        "failure": ["Conflict", "the object has been modified"], "woken": ["Pod default/shop-b"],
        "requests": [{"method": "PATCH", "path": "/apis/apps/v1/namespaces/default/deployments/shop?x=y", "code": 409, "took": 900}],
        "logs": [{"level": "WARN", "text": "again \u{1b}[31msoon"}],
    });
    model.runs = vec![Numbered { id: 1, run: serde_json::from_value(recorded).unwrap(), built_in: false }];
    model.press(Key::Enter);
    let screen = shown(&mut model, 100, 20, BARE);
    for line in [
        " 40s  error     1.5 ms  waited 20 us  again in 2.0 s  woken by Pod default/shop-b",
        "      Conflict  the object has been modified",
        "      PATCH  409 900 us  /apis/apps/v1/namespaces/default/deployments/shop",
        "      WARN   again soon",
    ] {
        assert!(screen.iter().any(|shown| shown == line), "{line:?} is not in {screen:#?}");
    }
}

#[test]
fn what_the_command_says_is_shown_at_its_end() {
    let mut model = demo();
    model.has_output = true;
    model.part = Part::Output;
    model.output = (0..100).map(|line| format!("line {line}")).collect();
    let screen = shown(&mut model, 60, 24, BARE);
    assert!(screen.iter().any(|line| line == "line 99") && !screen.iter().any(|line| line == "line 0"));
}

proptest! {
    /// Whatever objects are called and say, in whatever size: no cell holds what a terminal would act upon, and no row is
    /// wider than the terminal.
    #[test]
    fn hostile_objects_are_only_text(
        names in proptest::collection::vec((any::<String>(), any::<String>()), 1..6),
        keys in proptest::collection::vec(prop_oneof![Just(Key::Down), Just(Key::Enter), Just(Key::Tab), Just(Key::Character('t')), Just(Key::Left), Just(Key::Escape)], 0..6),
        width in 1..90_u16, height in 1..30_u16, unicode in any::<bool>(),
    ) {
        let rows: BTreeMap<String, Row> = names.iter().enumerate().map(|(at, (name, message))| {
            let name = format!("{name}\u{1b}[2J{}\u{202e}\u{4e2d}", "h".repeat(253));
            (at.to_string(), row(&at.to_string(), at % 4, &name, "", Health::Failed, message))
        }).collect();
        let mut model = model(rows.into_values().collect());
        model.output = names.iter().map(|(name, _)| name.clone()).collect();
        model.has_output = true;
        for key in keys {
            model.press(key);
        }
        let abilities = Abilities { unicode, colour: true };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&mut model, frame.buffer_mut(), abilities)).unwrap();
        for cell in terminal.backend().buffer().content() {
            let symbol = cell.symbol();
            prop_assert!(!symbol.chars().any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)), "{symbol:?}");
            prop_assert!(unicode || symbol.is_ascii(), "{symbol:?}");
        }
    }
}
