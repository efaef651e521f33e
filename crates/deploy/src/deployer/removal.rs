//! Taking an operator out of a cluster. No object of a custom kind is deleted unless its deletion was agreed to.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

use super::{Deployer, History, Identity, Needs, Target};
use crate::{
    count,
    error::Error,
    objects::{self, Custom, Loss},
    release::Release,
    remains,
};

/// How long objects may take to be finalized, unless somebody says how long to wait.
const GONE: Duration = Duration::from_mins(2);

/// Whether these objects may be lost.
pub(crate) type Consent<'a> = &'a (dyn Fn(&Loss) -> bool + Send + Sync);

impl Deployer<'_> {
    /// Deletes everything of a release but its definitions and their objects.
    ///
    /// Objects that have finalizers stay too, and are named: nobody ends them until the operator is back. Unless
    /// `consent` is given and agrees: then all objects are deleted first, while the operator still runs.
    pub async fn undeploy(
        &self,
        release: &Release,
        consent: Option<Consent<'_>>,
        dry_run: bool,
    ) -> Result<(), Error> {
        Needs::default().undeploying(release, consent.is_some()).check(&self.client).await?;
        let custom = objects::of_definitions(&self.client, release.definitions()).await?;
        let mut history = History::read(&self.client, &release.name, &release.namespace).await?;
        let doomed = doomed(release, history.objects()?);
        if let Some(consent) = consent {
            self.agree(&custom, consent)?;
        }
        if dry_run {
            return self.tell_removal(&doomed, &custom, consent.is_some()).await;
        }
        if consent.is_some() {
            let all: Vec<Custom> = custom.iter().flat_map(|(_, of)| of.clone()).collect();
            self.end(all).await?;
        }
        let (spaces, rest): (Vec<Target>, Vec<Target>) =
            doomed.into_iter().partition(|target| target.resource.kind == "Namespace");
        for target in rest {
            let Some(found) = target.found(&self.client).await? else { continue };
            if !crate::owners::is_own(&found, &release.name) {
                (self.tell)(&format!("kept {target}: it is somebody else's"));
            } else if target.delete(&self.client, found.metadata.uid).await? {
                (self.tell)(&format!("deleted {target}"));
            }
        }
        // Last, since they say what there is to delete.
        history.forget().await?;
        for space in spaces {
            self.delete_namespace(&space, release).await?;
        }
        self.tell_kept(release, if consent.is_some() { &[] } else { &custom });
        Ok(())
    }

    /// Deletes the definitions of a release. Those that have objects only if `consent` agrees to lose these.
    pub async fn uninstall(
        &self,
        release: &Release,
        consent: Consent<'_>,
        dry_run: bool,
    ) -> Result<(), Error> {
        Needs::default().uninstalling(release).check(&self.client).await?;
        for definition in release.definitions() {
            let target = Target::of(definition);
            let found = target.found(&self.client).await?;
            let owner = found.and_then(|found| crate::owners::stranger(&found, &release.name));
            if let Some(owner) = owner.filter(|_| !self.options.force_conflicts) {
                return Err(Error::Taken { what: target.to_string(), owner });
            }
        }
        let custom = objects::of_definitions(&self.client, release.definitions()).await?;
        self.agree(&custom, consent)?;
        if dry_run {
            for (name, _) in &custom {
                (self.tell)(&format!("would delete CustomResourceDefinition {name}"));
            }
            return Ok(());
        }
        for (name, of) in custom {
            self.end(of).await?;
            let definition =
                release.definitions().find(|definition| definition["metadata"]["name"] == name.as_str());
            let Some(target) = definition.map(Target::of) else { continue };
            let Some(live) = target.found(&self.client).await? else { continue };
            let uid = live.metadata.uid.clone();
            let live = serde_json::to_value(live).unwrap_or_default();
            // What was made since nobody has agreed to lose.
            let left = objects::of(&self.client, &live).await?;
            if !left.is_empty() {
                return Err(Error::NewObjects { what: name, count: left.len() });
            }
            if target.delete(&self.client, uid).await? {
                (self.tell)(&format!("deleted {target}"));
            }
        }
        Ok(())
    }

    /// Shows what would be lost, and asks.
    fn agree(&self, custom: &[(String, Vec<Custom>)], consent: Consent<'_>) -> Result<(), Error> {
        let loss = objects::loss(custom);
        if loss.total == 0 {
            return Ok(());
        }
        objects::show(self.tell, custom);
        if consent(&loss) { Ok(()) } else { Err(Error::NotAgreed { total: loss.total }) }
    }

    async fn end(&self, objects: Vec<Custom>) -> Result<(), Error> {
        objects::end(&self.client, objects, self.options.wait.unwrap_or(GONE), self.tell).await
    }

    async fn tell_removal(
        &self,
        doomed: &[Target],
        custom: &[(String, Vec<Custom>)],
        objects: bool,
    ) -> Result<(), Error> {
        for (_, of) in custom.iter().filter(|_| objects) {
            for object in of {
                (self.tell)(&format!("would delete {}", object.text()));
            }
        }
        for target in doomed {
            if target.found(&self.client).await?.is_some() {
                (self.tell)(&format!("would delete {target}"));
            }
        }
        Ok(())
    }

    /// Deletes the operator's namespace, if nothing of anybody else would go with it.
    async fn delete_namespace(&self, target: &Target, release: &Release) -> Result<(), Error> {
        let Some(found) = target.found(&self.client).await? else { return Ok(()) };
        let mut others = remains::of_others(&self.client, &target.name, &release.name).await?;
        for (_, of) in objects::of_definitions(&self.client, release.definitions()).await? {
            let inside = of.iter().filter(|object| object.target.namespace.as_ref() == Some(&target.name));
            others.extend(inside.map(|object| object.target.to_string()));
        }
        let foreign = !crate::owners::is_only_own(&found, &release.name);
        if foreign {
            (self.tell)(&format!("kept {target}: it is somebody else's"));
        } else if !others.is_empty() {
            others.truncate(10);
            (self.tell)(&format!("kept {target}: it also has {}", others.join(", ")));
        } else if target.delete(&self.client, found.metadata.uid).await? {
            (self.tell)(&format!("deleted {target}"));
        }
        Ok(())
    }

    /// What stays, and which objects nobody finalizes meanwhile.
    fn tell_kept(&self, release: &Release, custom: &[(String, Vec<Custom>)]) {
        for definition in release.definitions() {
            let target = Target::of(definition);
            let of = custom.iter().find(|(name, _)| *name == target.name).map_or(0, |(_, of)| of.len());
            (self.tell)(&format!("kept {target} and its {}", count::objects(of)));
        }
        let held: Vec<Custom> =
            custom.iter().flat_map(|(_, of)| of).filter(|object| object.is_held()).cloned().collect();
        if !held.is_empty() {
            let names = objects::names(&held);
            (self.tell)(&format!("whoever deletes one of these waits until the operator is back: {names}"));
        }
    }
}

/// What is deleted, in the order of its deletion: all that this release and earlier revisions have, but no definitions.
fn doomed(release: &Release, former: Vec<Value>) -> Vec<Target> {
    let all = Release::of(
        release.name.clone(),
        release.namespace.clone(),
        release.objects().iter().cloned().chain(former).collect(),
    );
    let mut seen: BTreeSet<Identity> = BTreeSet::new();
    let targets = all.targets().map(|(target, _)| target);
    let mut doomed: Vec<Target> =
        targets.filter(|target| !target.is_crd() && seen.insert(target.identity())).collect();
    doomed.reverse();
    doomed
}
