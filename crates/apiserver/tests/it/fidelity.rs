//! What a real kube-apiserver answered, and whether ours answers the same.
//!
//! The scripts lie in `tests/fidelity`, one file per behaviour, and beside each the recorded answers. Here
//! they are played at our server and compared. `cargo xtask fidelity record` plays the same scripts at a real
//! one and writes the recordings.

mod compare;
mod fuzz;
mod normal;
mod play;
mod rights;
mod script;

use std::path::{Path, PathBuf};

use self::{
    play::{Answer, Server},
    script::Script,
};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fidelity")
}

/// All scripts whose path contains the filter, in order.
fn scripts(filter: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for group in std::fs::read_dir(directory()).unwrap() {
        let group = group.unwrap().path();
        if group.is_dir() {
            found.extend(std::fs::read_dir(group).unwrap().map(|file| file.unwrap().path()));
        }
    }
    found.retain(|path| {
        path.extension().is_some_and(|extension| extension == "http")
            && path.strip_prefix(directory()).unwrap().to_string_lossy().contains(filter)
    });
    found.sort();
    found
}

#[test]
fn every_answer_equals_the_recorded_one() {
    let filter = std::env::var("WINDLASS_FIDELITY").unwrap_or_default();
    let scripts = scripts(&filter);
    assert!(!scripts.is_empty(), "no script in {} matches {filter:?}", directory().display());
    match std::env::var_os("WINDLASS_FIDELITY_RECORD") {
        Some(kubeconfig) => record(&scripts, Path::new(&kubeconfig)),
        None => replay(&scripts),
    }
}

fn record(scripts: &[PathBuf], kubeconfig: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::real(kubeconfig).await;
        let mut requests = 0;
        for path in scripts {
            let script = Script::read(path);
            let answers = Box::pin(play::play(&script, &server)).await;
            requests += answers.len();
            let text = serde_json::to_string_pretty(&answers).unwrap() + "\n";
            std::fs::write(path.with_extension("json"), text).unwrap();
        }
        eprintln!("recorded {requests} requests of {} scripts", scripts.len());
    });
}

fn replay(scripts: &[PathBuf]) {
    let (mut requests, mut failures) = (0, Vec::new());
    for path in scripts {
        let script = Script::read(path);
        let recording = path.with_extension("json");
        let recorded = std::fs::read(&recording).unwrap_or_else(|error| {
            panic!("{}: {error}: run `cargo xtask fidelity record`", recording.display())
        });
        let recorded: Vec<Answer> = serde_json::from_slice(&recorded).unwrap();
        // A script that waits for a watch to end waits on the paused clock.
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let ours = runtime.block_on(async { Box::pin(play::play(&script, &Server::ours())).await });
        requests += ours.len();
        failures.extend(compare::differences(&script, &recorded, &ours));
    }
    assert!(
        failures.is_empty(),
        "{} of {requests} answers differ from the recorded ones:\n\n{}",
        failures.len(),
        failures.join("\n")
    );
}
