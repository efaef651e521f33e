//! Waits until a started testbed is of use, and says what is wrong when it does not become so.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fs_err as fs;

use crate::kubernetes::kubectl::Kubectl;
use crate::kubernetes::layout::Layout;
use crate::kubernetes::logs;
use crate::kubernetes::plan::NODE_NAME;
use crate::kubernetes::state::{Mode, State};

/// A machine that compiles at the same time is slow; a warm start on an idle one takes a few seconds.
const TIMEOUT: Duration = Duration::from_mins(3);

/// One thing to wait for.
struct Step {
    what: &'static str,
    /// Whose log explains it when it does not come.
    blame: &'static str,
    done: fn(&Layout, &Kubectl) -> bool,
}

const API: Step = Step {
    what: "API server",
    blame: "kube-apiserver",
    done: |_, kubectl| kubectl.output(&["get", "--raw", "/readyz", "--request-timeout=5s"]).is_ok(),
};
const SERVICE_ACCOUNT: Step = Step {
    what: "default service account",
    blame: "kube-controller-manager",
    done: |_, kubectl| {
        kubectl
            .output(&["get", "--namespace=default", "serviceaccount/default", "--request-timeout=5s"])
            .is_ok()
    },
};
const IMAGES: Step =
    Step { what: "images", blame: "containerd", done: |layout, _| layout.path("images-loaded").exists() };
const STORAGE: Step = Step {
    what: "storage",
    blame: "storage",
    done: |_, kubectl| {
        kubectl
            .output(&["get", "storageclasses", "--output=name", "--request-timeout=5s"])
            .is_ok_and(|found| !found.is_empty())
    },
};
const NODE: Step = Step { what: "node", blame: "kubelet", done: |_, kubectl| node_is_ready(kubectl) };

/// Waits for everything that the testbed's mode promises, and marks it ready.
pub(super) fn wait(layout: &Layout, binaries: &Path, mut state: State, begin: Instant) -> Result<State> {
    let kubectl = Kubectl::new(&binaries.join("kubectl"), &layout.kubeconfig());
    let steps: &[Step] = match state.mode {
        Mode::Node => &[API, IMAGES, SERVICE_ACCOUNT, STORAGE, NODE],
        Mode::ControlPlane => &[API, SERVICE_ACCOUNT],
        Mode::ApiServer => &[API],
    };
    for step in steps {
        wait_for(step, layout, &kubectl, &state)?;
        anstream::println!("  {:5.1} s  {} ready", begin.elapsed().as_secs_f64(), step.what);
    }
    state.ready = true;
    state.write(layout)?;
    Ok(state)
}

fn wait_for(step: &Step, layout: &Layout, kubectl: &Kubectl, state: &State) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while !(step.done)(layout, kubectl) {
        if let Some((component, how)) = first_exit(layout) {
            bail!("{component} ended ({how}):\n{}", logs::tail(&layout.log(&component)));
        }
        if !state.running() {
            bail!("the testbed ended:\n{}", logs::tail(&layout.log("box")));
        }
        if Instant::now() > deadline {
            bail!(
                "{} not ready within {} s; {} says:\n{}",
                step.what,
                TIMEOUT.as_secs(),
                step.blame,
                logs::tail(&layout.log(step.blame))
            );
        }
        thread::sleep(Duration::from_millis(150));
    }
    Ok(())
}

/// The first component that has ended since the start, and how.
fn first_exit(layout: &Layout) -> Option<(String, String)> {
    let exits = fs::read_to_string(layout.exits()).ok()?;
    let (component, how) = exits.lines().next()?.split_once('\t')?;
    Some((component.to_owned(), how.to_owned()))
}

fn node_is_ready(kubectl: &Kubectl) -> bool {
    let query = r#"jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
    kubectl
        .output(&["get", "node", NODE_NAME, "--request-timeout=5s", "--output", query])
        .is_ok_and(|status| status == "True")
}
