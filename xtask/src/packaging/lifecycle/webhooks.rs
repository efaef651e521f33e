//! The webhooks of what OLM installed: it issues their certificate, mounts it, and tells the API server of it.
//!
//! Enters a client; leaves nothing when both are answered: an admission that only the operator can refuse, and a conversion
//! between versions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::kubernetes::Kubectl;

/// In the namespace `default`, protected from deletion.
const PROTECTED: &str = "\
apiVersion: database.example.com/v1
kind: Database
metadata: {name: protected}
spec: {version: \"15\", storage: {size: 1Gi}, deletionProtection: true}
";

/// Makes the object that is asked about.
pub(super) fn prepare(kubectl: &Kubectl) -> Result<()> {
    kubectl.with_input(&["apply", "--filename=-"], PROTECTED).map(drop)
}

/// Whether the operator refuses what it must, in its own words.
pub(super) fn refuses(kubectl: &Kubectl) -> bool {
    let told = kubectl.output(&["delete", "database/protected", "--dry-run=server"]);
    told.is_err_and(|error| error.to_string().contains("the Database is protected"))
}

/// Whether an object is answered in its older version.
pub(super) fn converts(kubectl: &Kubectl) -> bool {
    let version = "databases.v1alpha1.database.example.com/protected";
    let told = kubectl.output(&["get", version, "--output=jsonpath={.apiVersion} {.spec.type}"]);
    told.is_ok_and(|told| told == "database.example.com/v1alpha1 postgresql")
}

/// How often conversions were asked for, and how often there was no answer.
pub(super) struct Asked {
    pub(super) all: usize,
    pub(super) unanswered: usize,
}

/// Does something while somebody asks for conversions.
pub(super) fn while_asking(kubectl: &Kubectl, work: impl FnOnce() -> Result<()>) -> Result<Asked> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = Asked { all: 0, unanswered: 0 };
            while !over.load(Ordering::Relaxed) {
                asked.all += 1;
                asked.unanswered += usize::from(!converts(kubectl));
                std::thread::sleep(Duration::from_millis(200));
            }
            asked
        });
        let worked = work();
        over.store(true, Ordering::Relaxed);
        let asked = asking.join().ok().context("whoever asked for conversions panicked")?;
        worked?;
        ensure!(asked.all > asked.unanswered, "no conversion was answered during the upgrade");
        Ok(asked)
    })
}

/// Lets the object go again. Its finalizer is for an operator that is about to go, so nobody waits for it.
pub(super) fn clean(kubectl: &Kubectl) -> Result<()> {
    let free = "--patch={\"spec\":{\"deletionProtection\":false}}";
    kubectl.output(&["patch", "database/protected", "--type=merge", free])?;
    kubectl.output(&["delete", "database/protected", "--timeout=120s"]).map(drop)
}
