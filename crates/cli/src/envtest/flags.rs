//! Command lines as Go's programs take them: `--name=value`, `--name value`, and switches that need no value.

use std::collections::BTreeMap;

/// A flag that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// Whether it is a switch: then a value stands behind `=` or nowhere.
    pub(super) switch: bool,
    pub(super) about: &'static str,
}

/// A flag with a value.
pub(super) const fn value(name: &'static str, about: &'static str) -> Flag {
    Flag { name, switch: false, about }
}

/// A flag that is on or off.
pub(super) const fn switch(name: &'static str, about: &'static str) -> Flag {
    Flag { name, switch: true, about }
}

/// What was given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    values: BTreeMap<String, Vec<String>>,
    /// Flags that nobody knows, in the order in which they were given.
    pub(super) unknown: Vec<String>,
    pub(super) help: bool,
    pub(super) version: bool,
}

impl Given {
    pub(super) fn parse(flags: &[Flag], arguments: impl IntoIterator<Item = String>) -> Self {
        let (mut given, mut arguments) = (Self::default(), arguments.into_iter().peekable());
        while let Some(argument) = arguments.next() {
            let Some(named) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                continue;
            };
            let (name, inline) = match named.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (named, None),
            };
            let known = flags.iter().find(|flag| flag.name == name);
            match name {
                "" => continue,
                "help" | "h" => given.help = true,
                "version" => given.version = true,
                _ if known.is_none() => given.unknown.push(name.to_owned()),
                _ => {}
            }
            // Of an unknown flag nobody knows whether what follows is its value; another flag is not.
            let follows = |next: &String| !next.starts_with('-') || known.is_some();
            let takes = known.map_or(!matches!(name, "help" | "h" | "version"), |flag| !flag.switch);
            let value = inline.or_else(|| if takes { arguments.next_if(follows) } else { None });
            given.values.entry(name.to_owned()).or_default().push(value.unwrap_or_else(|| "true".to_owned()));
        }
        given
    }

    /// The value of a flag: the last one counts.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All values of a flag that is a list, given several times or with commas.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let values = self.values.get(name).into_iter().flatten();
        let parts = values.flat_map(|value| value.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }
}

/// The help: envtest looks there for what a program can do.
pub(super) fn help(name: &str, flags: &[Flag]) -> String {
    let line = |flag: &Flag| {
        let kind = if flag.switch { "" } else { " string" };
        format!("      --{}{kind}   {}\n", flag.name, flag.about)
    };
    let lines: String = flags.iter().map(line).collect();
    format!(
        "This is windlass, called as {name}: it takes the place of that program in tests.\n\nFlags:\n{lines}\n\
         Any other flag is a warning, and has no effect.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &[Flag] = &[value("secure-port", "a"), switch("allow-privileged", "b"), value("v", "c")];

    fn given(line: &str) -> Given {
        Given::parse(FLAGS, line.split(' ').map(str::to_owned))
    }

    #[test]
    fn every_way_to_write_a_flag_is_understood() {
        for line in [
            "--secure-port=1 --allow-privileged --v=2",
            "--secure-port 1 --allow-privileged=true -v 2",
            "-secure-port=0 --v 2 --secure-port 1 --allow-privileged",
        ] {
            let given = given(line);
            assert_eq!((given.last("secure-port"), given.last("v")), (Some("1"), Some("2")), "{line}");
            assert_eq!(given.last("allow-privileged"), Some("true"), "{line}");
            assert!(given.unknown.is_empty(), "{line}");
        }
    }

    #[test]
    fn an_unknown_flag_takes_what_follows_unless_that_is_a_flag() {
        let given = given("--new thing --newer --secure-port 7 --newest=x stray --help");
        assert_eq!(given.unknown, ["new", "newer", "newest"]);
        assert_eq!((given.last("secure-port"), given.last("new")), (Some("7"), Some("thing")));
        assert!(given.help && !given.version);
    }

    #[test]
    fn lists_are_gathered() {
        let given = given("--secure-port=a,b --secure-port=c --allow-privileged=");
        assert_eq!(given.list("secure-port"), ["a", "b", "c"]);
        assert_eq!(given.last("allow-privileged"), None);
    }

    #[test]
    fn the_help_has_a_line_for_each_flag() {
        let help = help("etcd", FLAGS);
        assert!(help.lines().any(|line| line.trim_start().starts_with("--secure-port ")), "{help}");
        assert!(!help.contains("insecure-port"), "envtest would give it");
    }
}
