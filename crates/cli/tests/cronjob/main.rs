//! kubebuilder's tutorial: its CronJob, from `init` to the behaviours that the tutorial asks for.
//!
//! What is scaffolded compiles and passes its own tests; then what the tutorial's reader writes takes the place of the
//! scaffold's example (`project/`), and is tested in turn. It takes minutes: `just walk` runs it.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const WRITTEN: [&str; 9] = [
    "src/cronjob.rs",
    "src/cronjob/api.rs",
    "src/cronjob/build.rs",
    "src/cronjob/controller.rs",
    "src/cronjob/schedule.rs",
    "src/cronjob/status.rs",
    "src/cronjob/webhook.rs",
    "tests/it/cronjob.rs",
    "tests/it/cronjob_webhook.rs",
];

fn run(folder: &Path, program: &str, line: &str) -> String {
    let mut command = Command::new(program);
    // What is built is shared with the workspace.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    command.args(line.split(' ')).current_dir(folder).env("CARGO_TARGET_DIR", target);
    command.env("CARGO_NET_OFFLINE", "true").env_remove("RUST_LOG");
    // What cargo tells a test about its package would make build scripts that watch it run again.
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    let output = command.output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {line}\n{said}");
    said
}

#[test]
fn the_cronjob_of_kubebuilders_tutorial_behaves_as_the_tutorial_says() {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let outer = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cronjob");
    let _ = fs::remove_dir_all(&outer);
    fs::create_dir_all(&outer).unwrap();
    let windlass = |folder: &Path, line: &str| run(folder, env!("CARGO_BIN_EXE_windlass"), line);
    let cargo = |folder: &Path, line: &str| run(folder, env!("CARGO"), line);

    let sdk = repository.display();
    windlass(&outer, &format!("init cronjob-operator --domain tutorial.kubebuilder.io --sdk {sdk}"));
    let project = outer.join("cronjob-operator");
    windlass(&project, "create api --group batch --version v1 --kind CronJob --make=false");
    let webhook = "create webhook --group batch --version v1 --kind CronJob --defaulting";
    windlass(&project, &format!("{webhook} --programmatic-validation --make=false"));
    cargo(&project, "test --quiet");

    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cronjob/project");
    for file in WRITTEN {
        fs::copy(written.join(file), project.join(file)).unwrap();
    }
    // The scaffold's tests are of the scaffold's example.
    fs::remove_file(project.join("src/cronjob/tests.rs")).unwrap();
    cargo(&project, "add --quiet thiserror@2");
    cargo(&project, "fmt --check");
    cargo(&project, "test --quiet");
    cargo(&project, "clippy --quiet --all-targets -- -D warnings");
    let printed = cargo(&project, "run --quiet -- manifests --image cronjob:1");
    assert!(printed.contains("name: cronjobs.batch.tutorial.kubebuilder.io"), "{printed}");
}
