//! The suite as a program: which conformance specs it has, and the command that runs one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::kubernetes;

/// The built suite.
pub(super) struct Suite {
    binaries: PathBuf,
}

impl Suite {
    pub(super) fn build() -> Result<Self> {
        Ok(Self { binaries: kubernetes::suite()? })
    }

    /// The names of all conformance specs.
    pub(super) fn specs(&self) -> Result<BTreeSet<String>> {
        let mut command = Command::new(self.binaries.join("e2e.test"));
        let output = command.arg("--list-conformance-tests").output().context("failed to start e2e.test")?;
        if !output.status.success() {
            bail!(
                "e2e.test failed to list its specs:\n{}",
                String::from_utf8_lossy(&output.stderr).trim_end()
            );
        }
        let specs = codenames(&String::from_utf8_lossy(&output.stdout));
        ensure!(!specs.is_empty(), "e2e.test listed no conformance spec");
        Ok(specs)
    }

    /// The command that runs one spec and gives up on it, cleanly, after `limit`.
    pub(super) fn command(&self, spec: &str, kubeconfig: &Path, limit: Duration) -> Command {
        let mut command = Command::new(self.binaries.join("e2e.test"));
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--kubectl-path={}", self.binaries.join("kubectl").display()))
            .args(["--provider=local", "--allowed-not-ready-nodes=-1", "--disable-log-dump"])
            .args(["--dump-logs-on-failure=false", "--ginkgo.no-color", "--ginkgo.v"])
            .arg(format!("--ginkgo.timeout={}s", limit.as_secs()))
            .arg("--ginkgo.grace-period=10s")
            // The suite's own title stands before the name, so the beginning is left open.
            .arg(format!("--ginkgo.focus= {}$", regex::escape(spec)));
        command
    }
}

/// The special interest group of a spec: `api-machinery` of `[sig-api-machinery] …`.
pub(super) fn sig(spec: &str) -> &str {
    spec.strip_prefix("[sig-").and_then(|rest| rest.split_once(']')).map_or("", |(sig, _)| sig)
}

/// Whether a spec changes what others see, so that it must run alone.
pub(super) fn is_serial(spec: &str) -> bool {
    ["[Serial]", "[Disruptive]"].iter().any(|tag| spec.contains(tag))
}

/// The values of `codename`, which the suite prints as YAML: quoted or plain, folded over several lines.
fn codenames(yaml: &str) -> BTreeSet<String> {
    let mut specs = BTreeSet::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.trim_start().trim_start_matches("- ").strip_prefix("codename: ") else {
            continue;
        };
        let mut name = first.to_owned();
        // Keys stand two columns deep; what stands deeper goes on with the value.
        while let Some(next) = lines.next_if(|next| next.starts_with("    ")) {
            name.push(' ');
            name.push_str(next.trim());
        }
        let name = match name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')) {
            Some(quoted) => quoted.replace("''", "'"),
            None => name,
        };
        specs.insert(name);
    }
    specs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_from_all_of_its_lines() {
        let yaml = "- testname: One\n  codename: '[sig-auth] it''s folded over\n    two lines [Conformance]'\n  \
                    release: v1.9\n- codename: plain\n  file: x\n";
        let specs: Vec<_> = codenames(yaml).into_iter().collect();
        assert_eq!(specs, ["[sig-auth] it's folded over two lines [Conformance]", "plain"]);
    }

    #[test]
    fn a_spec_names_its_group() {
        assert_eq!(sig("[sig-api-machinery] Watchers should [Conformance]"), "api-machinery");
        assert_eq!(sig("nothing"), "");
    }

    #[test]
    fn what_changes_the_cluster_runs_alone() {
        assert!(is_serial("[sig-apps] Daemon set [Serial] should retry [Conformance]"));
        assert!(!is_serial("[sig-apps] Job should run [Conformance]"));
    }
}
