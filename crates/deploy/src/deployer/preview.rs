//! `--dry-run`: what would happen to each object, by the API server's own judgement.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Deployer, History, Identity, Needs, Target};
use crate::{diff, error::Error, release::Release};

impl Deployer<'_> {
    /// Tells what [`deploy`](Self::deploy) would do, or with `definitions_only` what [`install`](Self::install) would, and
    /// does nothing.
    pub async fn preview(&self, release: &Release, definitions_only: bool) -> Result<(), Error> {
        let installed;
        let release = if definitions_only {
            installed = self.without_conversion(release).await?;
            &installed
        } else {
            self.namespace_stays(&release.namespace).await?;
            release
        };
        let needs = Needs::default().defining(release);
        let needs = if definitions_only { needs } else { needs.applying(release) };
        needs.check(&self.client).await?;
        self.steps(release, false).await?;
        let mut unchanged = 0;
        for (target, object) in release.targets().filter(|(target, _)| target.is_crd() || !definitions_only) {
            let (found, would) = self.applier(release).rehearse(object).await?;
            let would = would.map(|would| serde_json::to_value(would).unwrap_or_default());
            let text =
                diff::unified(&target.to_string(), found.as_ref(), &would.unwrap_or_else(|| object.clone()))?;
            if text.is_empty() {
                unchanged += 1;
                continue;
            }
            (self.tell)(&format!("would {} {target}", if found.is_some() { "change" } else { "create" }));
            (self.tell)(text.trim_end());
        }
        if !definitions_only {
            self.preview_pruning(release).await?;
        }
        (self.tell)(&format!("unchanged: {unchanged}; nothing was changed, this was a dry run"));
        Ok(())
    }

    async fn preview_pruning(&self, release: &Release) -> Result<(), Error> {
        let history = History::read(&self.client, &release.name, &release.namespace).await?;
        let wanted: BTreeSet<Identity> = release.targets().map(|(target, _)| target.identity()).collect();
        let mut seen = BTreeSet::new();
        let gone = |object: &Value| {
            let target = Target::of(object);
            let keep = target.is_crd() || target.resource.kind == "Namespace";
            (!keep && !wanted.contains(&target.identity()) && seen.insert(target.identity()))
                .then_some(target)
        };
        let former = history.objects()?;
        let gone: Vec<Target> = former.iter().filter_map(gone).collect();
        for target in gone {
            let found = target.found(&self.client).await?;
            if found.is_some_and(|found| crate::owners::is_own(&found, &release.name)) {
                (self.tell)(&format!("would delete {target}, which is no longer part of it"));
            }
        }
        Ok(())
    }
}
