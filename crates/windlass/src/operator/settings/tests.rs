//! Flags, environment and file: what wins, and what is refused in which words.

use super::*;

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("windlass-settings-{name}-{}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn addresses_are_read_as_controller_runtime_reads_them() {
    let read = |text: &str| text.parse::<BindAddress>().map(|address| address.0.map(|a| a.to_string()));
    assert_eq!(read("0"), Ok(None));
    assert_eq!(read(":8081"), Ok(Some("0.0.0.0:8081".into())));
    assert_eq!(read("localhost:80"), Ok(Some("127.0.0.1:80".into())));
    assert_eq!(read("[::1]:80"), Ok(Some("[::1]:80".into())));
    assert!(read("8081").unwrap_err().contains("write host:port"));
}

#[test]
fn times_are_seconds_or_say_their_unit() {
    let read = |text: &str| text.parse::<Time>().map(|time| time.0.as_secs());
    assert_eq!((read("30"), read("45s"), read("1m30s")), (Ok(30), Ok(45), Ok(90)));
    assert!(read("soon").unwrap_err().contains("write 30s"));
}

#[test]
fn namespaces_are_a_list_of_names() {
    let read = |text: &str| text.parse::<Namespaces>().map(|names| names.0);
    assert_eq!(read("a, b-2,"), Ok(vec!["a".to_owned(), "b-2".to_owned()]));
    assert_eq!(read(""), Ok(Vec::new()), "all of them");
    for wrong in ["A", "-a", "a-", "a b", "a/b", &"a".repeat(64)] {
        assert!(read(wrong).unwrap_err().contains("separated by commas"), "{wrong}");
    }
    for (key, text) in [("watch-namespaces", "[a, b]"), ("watch-namespace", "a, b")] {
        let path = file(key, &format!("{key}: {text}\n"));
        let settings = Settings::read(Given::default(), Some(&path)).unwrap();
        assert_eq!(settings.namespaces().unwrap(), ["a", "b"], "{key}");
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(Settings::default().namespaces(), None, "what the program says");
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let path = file(
        "precedence",
        "leader-elect: true\nwebhook-port: 1234\nhealth-probe-bind-address: 0\n\
         graceful-shutdown-timeout: 1m\nlog-format: json\ncontrollers: {box: {concurrency: 4}}\n",
    );
    let flags = Given { webhook_port: Some(99), ..Given::default() };
    let settings = Settings::read(flags, Some(&path)).unwrap();
    let server = settings.webhooks("op", "ns").unwrap();
    assert_eq!(server.address.port(), 99, "the flag");
    assert!(settings.election(None, usual).is_some(), "the file");
    assert_eq!((settings.probes(), settings.drain()), (None, Some(Duration::from_mins(1))));
    assert_eq!(settings.given.log_format, Some(LogFormat::Json));
    assert!(settings.metrics_secure() && settings.metrics().is_none(), "the defaults");
    assert_eq!(settings.concurrency(&["box", "pod"]).unwrap(), [("box", 4)]);
    assert!(settings.concurrency(&["pod"]).is_err());
    std::fs::remove_file(path).unwrap();
}

fn usual() -> LeaderElection {
    LeaderElection::new("op", "ns", "me")
}

#[test]
fn a_programmed_election_keeps_its_lease_unless_another_is_given() {
    let programmed = || Some(LeaderElection::new("mine", "home", "me"));
    let read = |given: Given| Settings { given, ..Settings::default() };
    let names = |election: Option<LeaderElection>| election.map(|e| (e.lease, e.namespace));
    let named = |lease: &str, namespace: &str| Some((lease.to_owned(), namespace.to_owned()));
    let on = || Given { leader_elect: Some(true), ..Given::default() };
    assert_eq!(names(read(on()).election(programmed(), usual)), named("mine", "home"));
    assert_eq!(names(read(Given::default()).election(programmed(), usual)), named("mine", "home"));
    assert_eq!(names(read(on()).election(None, usual)), named("op", "ns"));
    assert_eq!(names(read(Given::default()).election(None, usual)), None);
    let off = Given { leader_elect: Some(false), ..Given::default() };
    assert_eq!(names(read(off).election(programmed(), usual)), None, "turned off");
    let other = Given {
        leader_election_id: Some("other".into()),
        leader_election_namespace: Some("away".into()),
        leader_elect_lease_duration: Some(Time(Duration::from_mins(1))),
        ..Given::default()
    };
    let election = read(other).election(programmed(), usual).unwrap();
    assert_eq!(election.duration.as_secs(), 60);
    assert_eq!(names(Some(election)), named("other", "away"));
}

#[test]
fn an_empty_file_changes_nothing_and_a_misspelt_key_is_refused() {
    let path = file("empty", "");
    assert!(Settings::read(Given::default(), Some(&path)).is_ok());
    std::fs::remove_file(path).unwrap();
    let path = file("misspelt", "metrics-adress: 0\n");
    let error = Settings::read(Given::default(), Some(&path)).unwrap_err();
    assert!(error.hint().unwrap().contains("metrics-"), "{error}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn who_is_debugging_elects_only_when_asked_to() {
    let programmed = || Some(LeaderElection::new("a", "b", "c"));
    let election = |debugging: bool, elect: Option<bool>| {
        let given = Given { debugging: Some(debugging), leader_elect: elect, ..Given::default() };
        Settings { given, ..Settings::default() }.election(programmed(), || unreachable!()).is_some()
    };
    assert!(election(false, None) && election(true, Some(true)));
    assert!(!election(true, None));
}

#[test]
fn a_kind_that_is_disabled_is_neither_worked_on_nor_installed() {
    use crate::operator::{Placement, manifests::tests::hooked};
    let mut operator = hooked();
    let names: Vec<String> = operator.crds().iter().filter_map(|crd| crd.metadata.name.clone()).collect();
    let unknown = disable(&mut operator, Some(&"nothing.example.com".parse().unwrap())).unwrap_err();
    assert!(unknown.hint().unwrap().contains(&names[0]), "{unknown}");
    let kinds: Kinds = names.join(",").parse().unwrap();
    disable(&mut operator, Some(&kinds)).unwrap();
    for name in &names {
        operator.drop_webhooks(name);
    }
    let manifests = operator.manifests(&Placement::new("home", "a:1"));
    let kinds: Vec<&str> = manifests.iter().filter_map(|object| object["kind"].as_str()).collect();
    assert!(!kinds.contains(&"CustomResourceDefinition"), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind.ends_with("WebhookConfiguration")), "{kinds:?}");
}
