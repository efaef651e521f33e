//! What is done with a release: installed, deployed, undone, undeployed, uninstalled. Each reads as its list of steps.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use windlass::{
    k8s_openapi::api::core::v1::Namespace,
    kube::{Api, Client},
};

use crate::{
    Tell,
    access::Needs,
    apply::Applier,
    definitions::{During, Step},
    error::Error,
    history::History,
    migration, objects, owners,
    release::{Release, asks},
    target::{Identity, Target},
    wait,
};

mod plan;
mod preview;
mod removal;

/// How things are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Take over what others have.
    pub force_conflicts: bool,
    /// Apply definitions also where stored objects break.
    pub allow_breaking: bool,
    /// How long to wait until everything is ready; `None` does not wait.
    pub wait: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self { force_conflicts: false, allow_breaking: false, wait: Some(Duration::from_mins(5)) }
    }
}

/// Puts releases into a cluster and takes them out again.
#[derive(Clone)]
pub struct Deployer<'a> {
    client: Client,
    options: Options,
    tell: Tell<'a>,
}

impl<'a> Deployer<'a> {
    /// One that works with this client, and tells what it does.
    pub fn new(client: Client, options: Options, tell: Tell<'a>) -> Self {
        Self { client, options, tell }
    }

    /// Installs the definitions of a release, and waits until they are served.
    ///
    /// Without the operator nobody converts objects: a definition that has no conversion yet is not given one.
    pub async fn install(&self, release: &Release) -> Result<(), Error> {
        let release = &self.without_conversion(release).await?;
        Needs::default().defining(release).check(&self.client).await?;
        let steps = self.steps(release, false).await?;
        self.rehearse_definitions(release, &steps).await?;
        for step in &steps {
            self.before_rollout(step, release).await?;
        }
        for step in &steps {
            self.after_rollout(step, release).await?;
        }
        Ok(())
    }

    /// Deploys a release: its definitions, what runs it, and last what makes the API server ask it.
    pub async fn deploy(&self, release: &Release) -> Result<(), Error> {
        self.roll(release, false).await
    }

    /// Deploys once more what ran before what runs now, or a revision by its number.
    ///
    /// A definition whose older form would drop what objects hold stays as it is, unless breaking them is allowed.
    pub async fn undo(&self, name: &str, namespace: &str, revision: Option<u64>) -> Result<(), Error> {
        let history = History::read(&self.client, name, namespace).await?;
        let record = match revision {
            Some(revision) => history.revision(revision).ok_or_else(|| Error::NoRevision {
                name: name.to_owned(),
                revision,
                there: history
                    .records
                    .iter()
                    .map(|it| it.revision.to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            })?,
            None => history.former().ok_or_else(|| Error::NothingToUndo {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
            })?,
        };
        let image = if record.image.is_empty() { String::new() } else { format!(" ({})", record.image) };
        (self.tell)(&format!("going back to revision {}{image}", record.revision));
        let release = Release::of(name.to_owned(), namespace.to_owned(), record.objects()?);
        self.roll(&release, true).await
    }

    async fn roll(&self, release: &Release, back: bool) -> Result<(), Error> {
        // Everything that can be known before anything is changed.
        self.namespace_stays(&release.namespace).await?;
        Needs::default().defining(release).applying(release).check(&self.client).await?;
        let steps = self.steps(release, back).await?;
        self.rehearse_definitions(release, &steps).await?;
        for object in release.others() {
            self.applier(release).rehearse(object).await?;
        }
        // From here on a second run finishes what this one does not.
        self.apply(release, |object| object["kind"] == "Namespace").await?;
        let mut history = History::read(&self.client, &release.name, &release.namespace).await?;
        let revision = history.begin(release).await?;
        let former = history.objects()?;
        for step in &steps {
            self.before_rollout(step, release).await?;
        }
        let quiet = |object: &Value| !asks(object) && object["kind"] != "Namespace";
        self.apply(release, quiet).await?;
        if let Some(limit) = self.options.wait {
            wait::rolled_out(&self.client, release, limit, self.tell).await?;
        }
        self.apply(release, asks).await?;
        for step in &steps {
            if self.options.wait.is_none() && step.needs_the_operator() {
                (self.tell)(&format!(
                    "{} stores its new version once this is run again and waits",
                    step.target
                ));
                continue;
            }
            self.after_rollout(step, release).await?;
        }
        self.prune(release, &former).await?;
        if let Some(limit) = self.options.wait
            && wait::webhooks(&self.client, release, limit, self.tell).await?
        {
            for step in &steps {
                self.migrate(step).await?;
            }
        }
        history.finish(revision).await?;
        (self.tell)(&format!("deployed {} as revision {revision}", release.name));
        Ok(())
    }

    async fn apply(&self, release: &Release, which: impl Fn(&Value) -> bool) -> Result<(), Error> {
        for object in release.others().filter(|object| which(object)) {
            let outcome = self.applier(release).apply(object).await?;
            (self.tell)(&format!("{} {}", outcome.word(), Target::of(object)));
        }
        Ok(())
    }

    /// Deletes what earlier revisions had and this one has not. Definitions stay, and so does the namespace.
    async fn prune(&self, release: &Release, former: &[Value]) -> Result<(), Error> {
        let wanted: BTreeSet<Identity> = release.targets().map(|(target, _)| target.identity()).collect();
        let mut seen = BTreeSet::new();
        for object in former {
            let target = Target::of(object);
            let keep = target.is_crd() || target.resource.kind == "Namespace";
            if keep || wanted.contains(&target.identity()) || !seen.insert(target.identity()) {
                continue;
            }
            let Some(found) = target.found(&self.client).await? else { continue };
            if owners::is_own(&found, &release.name)
                && target.delete(&self.client, found.metadata.uid).await?
            {
                (self.tell)(&format!("deleted {target}, which is no longer part of it"));
            }
        }
        Ok(())
    }

    /// What must have happened to a definition before a new operator runs.
    async fn before_rollout(&self, step: &Step, release: &Release) -> Result<(), Error> {
        match (&step.during, &step.live) {
            (During::Applied(definition), _) => self.apply_definition(step, definition, release).await,
            (During::Stored(version), Some(live)) => {
                migration::store_as(&self.client, &step.target, live, version, &release.name).await?;
                migration::rewrite(&self.client, &step.target, version, self.tell).await
            }
            _ => Ok(()),
        }
    }

    /// What can only happen to a definition once the new operator runs.
    async fn after_rollout(&self, step: &Step, release: &Release) -> Result<(), Error> {
        match &step.during {
            During::Kept => Ok(()),
            During::Applied(definition) if *definition == step.after => Ok(()),
            _ => self.apply_definition(step, &step.after, release).await,
        }
    }

    async fn apply_definition(
        &self,
        step: &Step,
        definition: &Value,
        release: &Release,
    ) -> Result<(), Error> {
        let outcome = self.applier(release).apply(definition).await?;
        (self.tell)(&format!("{} {}", outcome.word(), step.target));
        wait::served(&self.client, &step.target).await
    }

    /// Rewrites objects that may be stored in a version that is no longer that of the definition.
    async fn migrate(&self, step: &Step) -> Result<(), Error> {
        let Some(live) = step.target.found(&self.client).await? else { return Ok(()) };
        let live = serde_json::to_value(live).unwrap_or_default();
        match step.rewrite(&live) {
            Some(version) => migration::rewrite(&self.client, &step.target, &version, self.tell).await,
            None => Ok(()),
        }
    }

    /// The release as it is installed without its operator.
    pub(super) async fn without_conversion(&self, release: &Release) -> Result<Release, Error> {
        let mut objects = Vec::new();
        for object in release.objects() {
            let mut object = object.clone();
            let target = Target::of(&object);
            if target.is_crd() && object["spec"]["conversion"]["strategy"] == "Webhook" {
                let live = target.found(&self.client).await?;
                let converts =
                    live.is_some_and(|live| live.data["spec"]["conversion"]["strategy"] == "Webhook");
                if let (false, Some(spec)) = (converts, object["spec"].as_object_mut()) {
                    spec.remove("conversion");
                }
            }
            objects.push(object);
        }
        Ok(Release::of(release.name.clone(), release.namespace.clone(), objects))
    }

    fn applier<'b>(&'b self, release: &'b Release) -> Applier<'b> {
        Applier { client: &self.client, operator: &release.name, force: self.options.force_conflicts }
    }

    /// A namespace that is going takes nothing new.
    async fn namespace_stays(&self, name: &str) -> Result<(), Error> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        // Who may not read it hears of it from the first request.
        let Ok(Some(found)) = namespaces.get_opt(name).await else { return Ok(()) };
        if found.metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        let conditions = found.status.into_iter().flat_map(|status| status.conditions.unwrap_or_default());
        let said: Vec<String> = conditions
            .filter(|it| it.status == "True")
            .filter_map(|it| it.message)
            .filter(|text| text.contains("remain"))
            .collect();
        let why = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
        Err(Error::Terminating { name: name.to_owned(), why })
    }
}
