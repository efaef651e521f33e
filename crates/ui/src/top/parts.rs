//! The lines below the tree: the runs of an object, its events, its log, its YAML.

use serde_json::Value;
use windlass::{
    jiff::Timestamp,
    kube::Client,
    runs::{Queued, Recorded},
};

use super::{
    model::Part,
    style::{Line, Tone},
};
use crate::{
    detail::{self, duration},
    health, lines,
    runs::Numbered,
    target::Target,
};

/// How old something is, in few characters.
pub(crate) fn age(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..120 => format!("{s}s"),
        s @ 120..7200 => format!("{}m", s / 60),
        s @ 7200..172_800 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

/// The runs for an object, newest first, with what waits in the queue.
pub(crate) fn runs(runs: &[Numbered], queue: &[Queued], target: &Target, now: i64) -> Vec<Line> {
    let mut lines = Vec::new();
    let same = |queued: &&Queued| queued.namespace == target.namespace && queued.name == target.name;
    let controllers: Vec<&str> = runs.iter().map(|run| run.run.controller.as_str()).collect();
    let known = |queued: &&Queued| controllers.contains(&queued.controller.as_str());
    for queued in queue.iter().filter(same).filter(known) {
        let failures =
            if queued.failures > 0 { format!(", failed {} times", queued.failures) } else { String::new() };
        let text = format!("{} {}{failures}", queued.place, duration(queued.millis * 1000));
        lines.push(Line::new(Tone::Label, "queue  ").and(Tone::Going, text));
    }
    for run in runs {
        run_lines(&run.run, now, &mut lines);
    }
    if lines.is_empty() {
        lines.push(Line::new(Tone::Faint, "No runs seen yet; they are recorded while somebody looks."));
    }
    lines
}

fn run_lines(run: &Recorded, now: i64, lines: &mut Vec<Line>) {
    let tone = match run.outcome.as_str() {
        "success" => Tone::Good,
        "requeue" => Tone::Going,
        _ => Tone::Bad,
    };
    let mut line = Line::new(Tone::Faint, format!("{:>4}  ", age(now - run.began.as_second())))
        .and(tone, format!("{:8}", run.outcome))
        .and(Tone::Plain, format!("  {}", duration(run.ran)))
        .and(Tone::Faint, format!("  waited {}", duration(run.waited)));
    if let Some(next) = run.next {
        line = line.and(Tone::Faint, format!("  again in {}", duration(next)));
    }
    if !run.woken.is_empty() {
        line = line.and(Tone::Faint, format!("  woken by {}", run.woken.join(", ")));
    }
    lines.push(line);
    if let Some((reason, message)) = &run.failure {
        lines.push(Line::new(Tone::Bad, format!("      {reason}  ")).and(Tone::Plain, message));
    }
    for request in &run.requests {
        let path = request.path.split('?').next().unwrap_or_default();
        let code = if (200..300).contains(&request.code) { Tone::Faint } else { Tone::Bad };
        lines.push(
            Line::new(Tone::Label, format!("      {:6} ", request.method))
                .and(code, format!("{} {}  ", request.code, duration(request.took)))
                .and(Tone::Plain, path),
        );
    }
    for logged in &run.logs {
        let tone = if logged.level == "ERROR" || logged.level == "WARN" { Tone::Bad } else { Tone::Faint };
        lines.push(Line::new(tone, format!("      {:6} ", logged.level)).and(Tone::Plain, &logged.text));
    }
}

/// What has to be asked for.
pub(crate) async fn load(client: Client, target: Target, part: Part) -> Vec<Line> {
    let object = match target.get(&client).await {
        Ok(Some(object)) => object,
        Ok(None) => return vec![Line::new(Tone::Faint, "This object is gone.")],
        Err(error) => return vec![Line::new(Tone::Bad, detail::said(&error))],
    };
    match part {
        Part::Events => events(&client, &target, &object).await,
        Part::Log => log(&client, &target, &object).await,
        Part::Yaml => yaml(&object),
        Part::Runs | Part::Output => Vec::new(),
    }
}

async fn events(client: &Client, target: &Target, object: &Value) -> Vec<Line> {
    let mut lines: Vec<Line> = health::conditions(object)
        .map(|condition| {
            let text = |field: &str| detail::text(&condition[field]);
            Line::new(Tone::Strong, format!("{} ", text("type")))
                .and(Tone::Plain, format!("{} ", text("status")))
                .and(Tone::Label, format!("{} ", text("reason")))
                .and(Tone::Faint, text("message"))
        })
        .collect();
    match detail::events(client, target, object).await {
        Ok(events) if events.is_empty() && lines.is_empty() => {
            lines.push(Line::new(Tone::Faint, "No conditions and no events."));
        }
        Ok(events) => lines.extend(events.iter().map(|event| {
            let now = Timestamp::now().as_second();
            let old = event.time.parse::<Timestamp>().map(|time| age(now - time.as_second()));
            let times = if event.count > 1 { format!(" x{}", event.count) } else { String::new() };
            let tone = if event.level == "Warning" { Tone::Bad } else { Tone::Good };
            Line::new(Tone::Faint, format!("{:>4}  ", old.unwrap_or_default()))
                .and(tone, format!("{}{times}  ", event.reason))
                .and(Tone::Plain, &event.message)
        })),
        Err(error) => lines.push(Line::new(Tone::Bad, detail::said(&error))),
    }
    lines
}

async fn log(client: &Client, target: &Target, object: &Value) -> Vec<Line> {
    let log = detail::log(client, target, object, None).await;
    match log.lines {
        Ok(text) if text.is_empty() => vec![Line::new(Tone::Faint, format!("No log of {}.", log.chosen))],
        Ok(text) => text.lines().map(|line| Line::new(Tone::Plain, line)).collect(),
        Err(problem) => vec![Line::new(Tone::Bad, problem)],
    }
}

fn yaml(object: &Value) -> Vec<Line> {
    let mut object = if detail::is_secret(object) { detail::mask(object) } else { object.clone() };
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    lines::yaml(&object).lines().map(|line| Line::new(Tone::Plain, line)).collect()
}
