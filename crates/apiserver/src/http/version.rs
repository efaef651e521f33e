//! `/version`.

use serde_json::{Value, json};

/// What `/version` says. The API is that of the Kubernetes release that the tables were recorded from.
pub(super) fn version() -> Value {
    json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.1+windlass", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", os(), arch()),
        "emulationMajor": "1", "emulationMinor": "37", "minCompatibilityMajor": "1", "minCompatibilityMinor": "36",
    })
}

fn os() -> &'static str {
    if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS }
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
