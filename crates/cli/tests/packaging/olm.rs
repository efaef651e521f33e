//! Bundles and a catalogue, as the Operator Framework reads and serves them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::tools::{Place, judge, run, windlass};

/// The Kubernetes that the bundles are held against.
const KUBERNETES: &str = "1.37.1";

pub(crate) fn bundle(place: &Place, only: &str, version: &str) -> PathBuf {
    let out = place.path(&format!("{only}-{version}"));
    let mut command = windlass();
    command.args(["operators", "bundle", "--version", version, "--out"]).arg(&out);
    command.args(["--maintainer", "Windlass contributors <windlass@example.com>"]);
    if !only.is_empty() {
        command.args(["--only", only]);
    }
    run(&mut command);
    out.join("bundle")
}

/// What whoever asks the served catalogue is told, by version: `PACKAGE CHANNEL BUNDLE REPLACES`.
///
/// opm listens on every interface, so it has a network of its own.
fn listed(place: &Place, catalog: &Path) -> Vec<String> {
    const SCRIPT: &str = "\
ip link set lo up
\"$1\" serve \"$3\" --pprof-addr= --termination-log \"$4\" > \"$4.log\" 2>&1 &
served=$!
for try in $(seq 60); do
    if \"$2\" 127.0.0.1:50051 2> \"$4.list\"; then told=yes; break; fi
    sleep 0.5
done
kill $served
[ \"$told\" = yes ] || { cat \"$4.log\" \"$4.list\" >&2; exit 1; }
";
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "--", "sh", "-c", SCRIPT, "sh"]);
    command.arg(judge("opm").get_program()).arg(judge("list").get_program());
    let told = run(command.arg(catalog).arg(place.path("termination")));
    told.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn the_validators_have_no_error_and_no_warning() {
    let place = Place::new();
    for only in ["", "podmanager", "webserver", "imoocpod", "memcached", "helloworld", "webapp", "database"] {
        let bundle = bundle(&place, only, "0.1.0");
        let told = run(judge("verify").arg(&bundle).arg(KUBERNETES));
        assert!(told.trim_end().ends_with("10 validators, 0 errors, 0 warnings"), "{told}");
        run(windlass().args(["bundle", "validate"]).arg(&bundle));
    }
}

#[test]
fn a_catalogue_that_grew_is_valid_and_served() {
    let place = Place::new();
    let catalog = place.path("catalog");
    for version in ["0.1.0", "0.3.0", "0.2.0"] {
        let bundle = bundle(&place, "memcached", version);
        run(windlass().args(["catalog", "add"]).arg(&bundle).arg("--out").arg(&catalog));
        run(judge("opm").arg("validate").arg(&catalog));
    }
    let rendered = run(judge("opm").args(["render", "-o", "json"]).arg(&catalog));
    assert_eq!(rendered.matches("\"schema\": \"olm.bundle\"").count(), 3, "{rendered}");
    let name = |version: &str| format!("memcached-operator.v{version}");
    let mut told = listed(&place, &catalog);
    told.sort();
    let line =
        |version: &str, replaces: &str| format!("memcached-operator candidate {} {replaces}", name(version));
    let wanted =
        [line("0.1.0", "").trim().to_owned(), line("0.2.0", &name("0.1.0")), line("0.3.0", &name("0.2.0"))];
    assert_eq!(told, wanted);
}
