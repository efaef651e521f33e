//! What a container's command would do, where that can be told without running it: `sleep 60`, `false`,
//! `sh -c "echo work; sleep 5; exit 3"`. Pure: a container enters, its [`Course`] leaves.
//!
//! Anything that is not understood as a whole is not understood at all: half a script would be a guess.

use std::time::Duration;

use windlass::k8s_openapi::api::core::v1::Container;

/// How a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// Until it is told to stop.
    Endless,
    /// It ends by itself with this code, after this time.
    Ends { code: i32, after: Duration },
    /// Its command does not say.
    Unknown,
}

/// The course of a container.
pub(super) fn of(container: &Container) -> Course {
    match told(container) {
        // What is asked whether it is ready, or offers a port, is there to answer.
        Course::Unknown if serves(container) => Course::Endless,
        course => course,
    }
}

/// The course of a container as far as its command or its image tells it. What declares a port may still end, such as
/// an init container, for whose end the others wait.
pub(super) fn told(container: &Container) -> Course {
    let words: Vec<&str> =
        container.command.iter().chain(&container.args).flatten().map(String::as_str).collect();
    match run(&words) {
        Some(course) => course,
        None if is_pause(container) => Course::Endless,
        None => Course::Unknown,
    }
}

/// The course of a command on its own, such as that of a probe.
pub(super) fn of_words(words: &[String]) -> Course {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(&words).unwrap_or(Course::Unknown)
}

/// Whether the image is the one that does nothing but wait.
fn is_pause(container: &Container) -> bool {
    let image = container.image.as_deref().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split([':', '@']).next() == Some("pause") && container.command.is_none()
}

fn serves(container: &Container) -> bool {
    let probed = container.readiness_probe.is_some()
        || container.liveness_probe.is_some()
        || container.startup_probe.is_some();
    probed || container.ports.as_ref().is_some_and(|ports| !ports.is_empty())
}

/// A command line; `None` where it is not understood.
fn run(words: &[&str]) -> Option<Course> {
    let (program, rest) = words.split_first()?;
    match (program.rsplit('/').next()?, rest) {
        ("sh" | "bash" | "ash", [flags, text]) if flags.starts_with('-') && flags.ends_with('c') => {
            script(text, flags.contains('e'))
        }
        // agnhost and its like: an image whose argument says that it waits.
        ("pause", []) => Some(Course::Endless),
        (name, rest) => statement(name, rest),
    }
}

/// A script of simple statements, one after the other; with `strict`, up to the first that fails.
fn script(text: &str, strict: bool) -> Option<Course> {
    let mut after = Duration::ZERO;
    let mut last = 0;
    let pieces = text.split(['\n', ';']).flat_map(|line| line.split("&&").enumerate());
    for (index, piece) in pieces {
        let words: Vec<&str> = piece.split_whitespace().collect();
        let Some((name, rest)) = words.split_first() else { continue };
        if index > 0 && last != 0 {
            continue;
        }
        match statement(name, rest)? {
            Course::Ends { code, after: time } => {
                after = after.saturating_add(time);
                last = code;
                if *name == "exit" || (strict && code != 0) {
                    break;
                }
            }
            other => return Some(other),
        }
    }
    Some(Course::Ends { code: last, after })
}

/// A statement without anything that a shell would replace.
fn statement(name: &str, rest: &[&str]) -> Option<Course> {
    let special = |word: &&str| word.contains(['$', '`', '|', '&', '>', '<', '(', ')', '*', '?']);
    if rest.iter().any(special) {
        return None;
    }
    let ends = |code: i32, after: Duration| Some(Course::Ends { code, after });
    match (name, rest) {
        ("true" | ":" | "echo" | "set" | "exec", _) if name != "exec" || rest.is_empty() => {
            ends(0, Duration::ZERO)
        }
        ("false", _) => ends(1, Duration::ZERO),
        ("exit", []) => ends(0, Duration::ZERO),
        ("exit", [code]) => ends(code.parse::<i32>().ok()? & 0xff, Duration::ZERO),
        ("sleep", ["infinity" | "inf"]) => Some(Course::Endless),
        ("sleep", [time]) => ends(0, seconds(time)?),
        _ => None,
    }
}

/// `90`, `90s`, `1.5m`, `2h`, `1d`.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    let (number, unit) = match text.char_indices().next_back()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        (at, 'd') => (&text[..at], 86400.0),
        _ => (text, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

#[cfg(test)]
mod tests {
    use windlass::k8s_openapi::api::core::v1::ContainerPort;

    use super::*;

    fn course(words: &[&str]) -> Course {
        of(&Container {
            command: Some(words.iter().map(ToString::to_string).collect()),
            ..Container::default()
        })
    }

    fn ends(code: i32, seconds: u64) -> Course {
        Course::Ends { code, after: Duration::from_secs(seconds) }
    }

    #[test]
    fn simple_commands_say_how_they_end() {
        assert_eq!(course(&["/bin/false"]), ends(1, 0));
        assert_eq!(course(&["sleep", "2m"]), ends(0, 120));
        assert_eq!(course(&["/bin/sh", "-c", "echo hello; sleep 3 && exit 7"]), ends(7, 3));
        assert_eq!(course(&["sh", "-ec", "false && exit 9"]), ends(1, 0));
        assert_eq!(course(&["sleep", "infinity"]), Course::Endless);
    }

    #[test]
    fn any_time_can_be_slept() {
        let long = |text: &str| matches!(course(&["sh", "-c", text]), Course::Ends { after, .. } if after.as_secs() > 1 << 62);
        assert!(long("sleep 9999999999999999999"));
        assert!(long("sleep 9999999999999999999; sleep 9999999999999999999"));
        assert_eq!(course(&["sleep", "99999999999999999999999"]), Course::Unknown);
        assert_eq!(course(&["sleep", "-1"]), Course::Unknown);
    }

    #[test]
    fn a_script_with_anything_else_says_nothing() {
        for text in ["exit $CODE", "if true; then exit 1; fi", "work", "echo a | sh", "sleep 1 || exit 2"] {
            assert_eq!(course(&["sh", "-c", text]), Course::Unknown, "{text}");
        }
        assert_eq!(course(&[]), Course::Unknown);
    }

    #[test]
    fn what_serves_does_not_end() {
        let port = ContainerPort { container_port: 80, ..ContainerPort::default() };
        let server = Container { ports: Some(vec![port]), ..Container::default() };
        assert_eq!(of(&server), Course::Endless);
        assert_eq!(told(&server), Course::Unknown, "it does not say so itself");
        let pause = Container { image: Some("registry.k8s.io/pause:3.10".into()), ..Container::default() };
        assert_eq!((of(&pause), told(&pause)), (Course::Endless, Course::Endless));
    }
}
