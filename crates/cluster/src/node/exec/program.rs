//! The programs that a simulated container answers for. Pure: words and a [`World`] enter, a [`Plan`] leaves.
//!
//! Only what the objects of the API decide is here. A plan says what would be seen, in order; waiting and typing are
//! steps of it, because they take time and are not known before.

use std::time::Duration;

use windlass_apiserver::containers::Stream;

use super::{
    files::Found,
    shell::{self, Join, Piece, Statement},
    world::World,
};
use crate::node::command;

/// What is said to whoever asks for more.
pub(super) const ABOUT: &str = "this container is simulated and runs no programs; answered are true, false, echo, \
    env, printenv, hostname, date, sleep, cat and ls of mounted ConfigMaps, Secrets and downward API files, and sh \
    with these";

/// `Mon Nov 16 09:27:47 UTC 2026`.
const DATE: &str = "%a %b %e %H:%M:%S UTC %Y";

/// Something that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Something is said.
    Say(Stream, Vec<u8>),
    /// The time is told, in this format.
    Date(String),
    /// Time passes; all of it with `None`.
    Wait(Option<Duration>),
    /// What is typed is said again, until its end.
    Copy,
    /// What is typed is a script.
    Shell,
}

/// What a command does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) code: i32,
    /// Whether a shell that is told to do this does nothing after it.
    pub(super) exits: bool,
}

impl Plan {
    fn ends(code: i32) -> Self {
        Self { code, ..Self::default() }
    }

    fn says(text: impl Into<Vec<u8>>) -> Self {
        Self::does(Step::Say(Stream::Stdout, text.into()))
    }

    fn does(step: Step) -> Self {
        Self { steps: vec![step], ..Self::default() }
    }

    fn complain(&mut self, text: String) {
        self.steps.push(Step::Say(Stream::Stderr, text.into()));
        self.code = 1;
    }
}

/// What a command does, if that is known.
pub(super) fn plan(words: &[String], world: &World) -> Option<Plan> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(&words, world)
}

fn run(words: &[&str], world: &World) -> Option<Plan> {
    let (program, rest) = words.split_first()?;
    let plan = match (program.rsplit('/').next()?, rest) {
        ("true", _) => Plan::ends(0),
        ("false", _) => Plan::ends(1),
        ("echo", rest) => return echo(rest),
        ("env", []) | ("printenv", []) => {
            Plan::says(lines(world.env.iter().map(|(name, value)| format!("{name}={value}"))))
        }
        ("printenv", names) => return printenv(names, world),
        ("hostname", []) => Plan::says(format!("{}\n", world.hostname)),
        ("date", rest) => return date(rest),
        ("sleep", ["infinity" | "inf"]) => Plan::does(Step::Wait(None)),
        ("sleep", [time]) => Plan::does(Step::Wait(Some(command::seconds(time)?))),
        ("cat", paths) => return cat(paths, world),
        ("ls", rest) => return ls(rest, world),
        ("sh" | "bash" | "ash" | "dash", [] | ["-i" | "-"]) => Plan::does(Step::Shell),
        ("sh" | "bash" | "ash" | "dash", [flags, text]) => {
            let strict = match *flags {
                "-c" => false,
                "-ec" | "-ce" => true,
                _ => return None,
            };
            return statements(&shell::parse(text)?, world, 0, strict);
        }
        _ => return None,
    };
    Some(plan)
}

fn lines(all: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    all.into_iter().fold(String::new(), |text, line| text + line.as_ref() + "\n")
}

/// What a script does, in a shell whose last command ended with `last`.
pub(super) fn script(text: &str, world: &World, last: i32) -> Option<Plan> {
    statements(&shell::parse(text)?, world, last, false)
}

fn statements(script: &[Statement], world: &World, last: i32, mut strict: bool) -> Option<Plan> {
    let mut whole = Plan { code: last, ..Plan::default() };
    for (index, statement) in script.iter().enumerate() {
        match statement.join {
            Join::And if whole.code != 0 => continue,
            Join::Or if whole.code == 0 => continue,
            _ => {}
        }
        let words = expanded(&statement.words, world, whole.code);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["exit", rest @ ..] => {
                whole.exits = true;
                match rest {
                    [] => {}
                    [code] => whole.code = code.parse::<i32>().ok()? & 0xff,
                    _ => return None,
                }
                return Some(whole);
            }
            [":", ..] => whole.code = 0,
            ["set", "-e" | "-eu"] => (strict, whole.code) = (true, 0),
            // Variables without a value leave nothing to run.
            [] => whole.code = 0,
            words => {
                let mut part = run(words, world)?;
                for step in part.steps.iter_mut().filter(|_| statement.to_stderr) {
                    match step {
                        Step::Say(stream, _) => *stream = Stream::Stderr,
                        Step::Wait(_) => {}
                        Step::Date(_) | Step::Copy | Step::Shell => return None,
                    }
                }
                whole.steps.append(&mut part.steps);
                whole.code = part.code;
            }
        }
        let is_asked = script.get(index + 1).is_some_and(|next| next.join != Join::Always);
        if strict && whole.code != 0 && !is_asked {
            whole.exits = true;
            return Some(whole);
        }
    }
    Some(whole)
}

/// Words with the values of their variables.
fn expanded(words: &[Vec<Piece>], world: &World, last: i32) -> Vec<String> {
    let value = |name: &str| match name {
        "?" => last.to_string(),
        name => world.variable(name).unwrap_or_default().to_owned(),
    };
    let mut done = Vec::new();
    for word in words {
        let mut current: Option<String> = None;
        for piece in word {
            match piece {
                Piece::Text(text) => current.get_or_insert_default().push_str(text),
                Piece::Variable { name, quoted: true } => {
                    current.get_or_insert_default().push_str(&value(name));
                }
                Piece::Variable { name, quoted: false } => {
                    let value = value(name);
                    if value.starts_with(char::is_whitespace) {
                        done.extend(current.take());
                    }
                    for (index, part) in value.split_whitespace().enumerate() {
                        if index > 0 {
                            done.extend(current.take());
                        }
                        current.get_or_insert_default().push_str(part);
                    }
                    if value.ends_with(char::is_whitespace) {
                        done.extend(current.take());
                    }
                }
            }
        }
        done.extend(current);
    }
    done
}

fn echo(rest: &[&str]) -> Option<Plan> {
    match rest {
        ["-n", rest @ ..] => Some(Plan::says(rest.join(" "))),
        // Whether these are flags depends on whose echo it is.
        [first, ..]
            if first.len() > 1 && first.starts_with('-') && first[1..].chars().all(|c| "neE".contains(c)) =>
        {
            None
        }
        rest => Some(Plan::says(format!("{}\n", rest.join(" ")))),
    }
}

fn printenv(names: &[&str], world: &World) -> Option<Plan> {
    if names.iter().any(|name| name.starts_with('-')) {
        return None;
    }
    let values: Vec<Option<&str>> = names.iter().map(|name| world.variable(name)).collect();
    let mut plan = Plan::says(lines(values.iter().flatten()));
    plan.code = i32::from(values.iter().any(Option::is_none));
    Some(plan)
}

fn date(rest: &[&str]) -> Option<Plan> {
    let format = match rest {
        [] | ["-u"] => DATE,
        [format] | ["-u", format] => format.strip_prefix('+')?,
        _ => return None,
    };
    // A format that is not known here would be told wrongly.
    windlass::jiff::fmt::strtime::format(format, windlass::jiff::Timestamp::UNIX_EPOCH).ok()?;
    Some(Plan::does(Step::Date(format.to_owned())))
}

fn cat(paths: &[&str], world: &World) -> Option<Plan> {
    if paths.is_empty() {
        return Some(Plan::does(Step::Copy));
    }
    let mut plan = Plan::default();
    for path in paths {
        if *path == "-" {
            plan.steps.push(Step::Copy);
            continue;
        }
        if path.starts_with('-') {
            return None;
        }
        match world.look(path) {
            Found::File(bytes) => plan.steps.push(Step::Say(Stream::Stdout, bytes.to_vec())),
            Found::Directory(_) => plan.complain("cat: read error: Is a directory\n".to_owned()),
            Found::Nothing => plan.complain(format!("cat: can't open '{path}': No such file or directory\n")),
            Found::Unknown => plan.complain(unknown(path)),
        }
    }
    Some(plan)
}

fn ls(rest: &[&str], world: &World) -> Option<Plan> {
    let (flags, paths): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.starts_with('-'));
    if flags.iter().any(|flag| *flag != "-1") {
        return None;
    }
    let paths = if paths.is_empty() { vec!["."] } else { paths };
    let (mut plan, mut files, mut directories) = (Plan::default(), Vec::new(), Vec::new());
    for path in &paths {
        match world.look(path) {
            Found::File(_) => files.push(format!("{path}\n")),
            Found::Directory(names) => directories.push((*path, names)),
            Found::Nothing => plan.complain(format!("ls: {path}: No such file or directory\n")),
            Found::Unknown => plan.complain(unknown(path)),
        }
    }
    files.sort();
    directories.sort();
    let mut blocks = if files.is_empty() { Vec::new() } else { vec![files.concat()] };
    for (path, names) in directories {
        let head = if paths.len() > 1 { format!("{path}:\n") } else { String::new() };
        blocks.push(head + &lines(names));
    }
    plan.steps.push(Step::Say(Stream::Stdout, blocks.join("\n").into()));
    Some(plan)
}

fn unknown(path: &str) -> String {
    format!(
        "windlass: {path}: not known: this container is simulated and has no image, only what is mounted from \
         ConfigMaps, Secrets, the downward API and empty directories\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::exec::files::{Content, Files};

    fn world() -> World {
        let tree = [("a.txt", "hello\n"), ("dir/b", "two")];
        let tree = tree.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
        World {
            env: vec![("A".into(), "1".into()), ("B".into(), "x  y".into())],
            files: Files::new([("/etc/conf".to_owned(), Content::Tree(tree))]),
            hostname: "one".into(),
            directory: None,
            notes: Vec::new(),
        }
    }

    /// Output, errors, code.
    fn outcome(words: &[&str]) -> Option<(String, String, i32)> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let plan = plan(&words, &world())?;
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        for step in plan.steps {
            match step {
                Step::Say(Stream::Stdout, bytes) => out.extend(bytes),
                Step::Say(Stream::Stderr, bytes) => errors.extend(bytes),
                _ => {}
            }
        }
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Some((text(out), text(errors), plan.code))
    }

    fn said(out: &str, errors: &str, code: i32) -> (String, String, i32) {
        (out.to_owned(), errors.to_owned(), code)
    }

    #[test]
    fn what_objects_decide_is_answered() {
        assert_eq!(outcome(&["/bin/echo", "-n", "a", "b"]).unwrap(), said("a b", "", 0));
        assert_eq!(outcome(&["env"]).unwrap(), said("A=1\nB=x  y\n", "", 0));
        assert_eq!(outcome(&["printenv", "A", "C"]).unwrap(), said("1\n", "", 1));
        assert_eq!(outcome(&["hostname"]).unwrap(), said("one\n", "", 0));
        assert_eq!(
            outcome(&["cat", "/etc/conf/a.txt", "/etc/conf/../conf/dir/b"]).unwrap(),
            said("hello\ntwo", "", 0)
        );
        assert_eq!(outcome(&["ls", "/etc/conf"]).unwrap(), said("a.txt\ndir\n", "", 0));
        let both = "/etc/conf:\na.txt\ndir\n\n/etc/conf/dir:\nb\n";
        assert_eq!(outcome(&["ls", "/etc/conf/dir", "/etc/conf"]).unwrap(), said(both, "", 0));
    }

    #[test]
    fn a_file_that_is_missing_and_one_that_is_not_known_are_told_apart() {
        let missing = "cat: can't open '/etc/conf/x': No such file or directory\n";
        assert_eq!(outcome(&["cat", "/etc/conf/x"]).unwrap(), said("", missing, 1));
        let (_, errors, code) = outcome(&["cat", "/etc/passwd"]).unwrap();
        assert!(errors.starts_with("windlass: /etc/passwd: not known"), "{errors}");
        assert_eq!(code, 1);
        assert!(outcome(&["ls"]).unwrap().1.contains("not known"));
    }

    #[test]
    fn scripts_do_what_a_shell_would() {
        let script = |text: &str| outcome(&["sh", "-c", text]).unwrap();
        assert_eq!(script("echo $A \"$B\" $B; echo oops >&2; exit 4"), said("1 x  y x y\n", "oops\n", 4));
        assert_eq!(script("false || echo $? && true"), said("1\n", "", 0));
        assert_eq!(script("false; echo on"), said("on\n", "", 0));
        assert_eq!(script("set -e; false; echo on"), said("", "", 1));
        assert_eq!(script("exit 300"), said("", "", 44));
        assert_eq!(outcome(&["bash", "-ec", "false || true; echo on"]).unwrap(), said("on\n", "", 0));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for unknown in
            [&["nginx", "-v"][..], &["echo", "-e", "a"], &["ls", "-l"], &["sh", "-c", "echo a; make"], &[]]
        {
            assert_eq!(outcome(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn what_takes_time_is_a_step() {
        let steps = |words: &[&str]| {
            plan(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), &world()).unwrap().steps
        };
        assert_eq!(steps(&["sleep", "2m"]), [Step::Wait(Some(Duration::from_mins(2)))]);
        assert_eq!(steps(&["sleep", "infinity"]), [Step::Wait(None)]);
        assert_eq!(steps(&["cat"]), [Step::Copy]);
        assert_eq!(steps(&["date", "+%s"]), [Step::Date("%s".into())]);
        assert_eq!(steps(&["sh"]), [Step::Shell]);
    }
}
