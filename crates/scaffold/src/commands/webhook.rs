//! `windlass create webhook` and `windlass delete webhook`: what the API server asks about a kind.

use std::path::Path;

use super::{Target, delete::step};
use crate::{Error, Plan, Project, plan::recover, project::Webhooks, render::is_hub};

/// Which webhooks.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebhookRequest {
    /// Fill in what a user left out.
    pub defaulting: bool,
    /// Judge objects.
    pub validation: bool,
    /// Convert between versions.
    pub conversion: bool,
}

/// Adds webhooks to a kind.
pub fn create_webhook(
    folder: &Path,
    target: &Target,
    request: WebhookRequest,
    force: bool,
) -> Result<Plan, Error> {
    let (root, project) = Project::find(folder)?;
    recover(&root)?;
    let at = target.find(&project)?;
    let (resource, mut next) = (&project.resources[at], project.clone());
    if !is_hub(&project, resource) {
        let stored =
            project.resources.iter().find(|known| known.is_same_kind(resource) && is_hub(&project, known));
        let version = stored.map(|stored| stored.version.clone()).unwrap_or_default();
        let problem = format!("{} is converted before anybody judges it", resource.describe());
        return Err(Error::refused(
            problem,
            format!("webhooks see the version that is stored: --version {version}"),
        ));
    }
    if resource.external {
        let problem = format!("{} belongs to somebody else", resource.describe());
        return Err(Error::refused(problem, "write a Webhook of your own, and add it in src/lib.rs"));
    }
    if request.conversion {
        let several = project.resources.iter().filter(|known| known.is_same_kind(resource)).count() > 1;
        let (problem, hint) = if several {
            ("converts between its versions already", "the conversion is in src/<kind>/api/<version>.rs")
        } else {
            (
                "has one version, so there is nothing to convert",
                "add another, and its conversion comes with it: windlass create api with another --version",
            )
        };
        return Err(Error::refused(format!("{} {problem}", resource.describe()), hint));
    }
    let had = resource.webhooks.clone().unwrap_or_default();
    if !(request.defaulting || request.validation) {
        return Err(Error::refused("no webhook is asked for", "add --defaulting, --validation or both"));
    }
    let new = |asked: bool, had: bool| asked && !had;
    if !new(request.defaulting, had.defaulting) && !new(request.validation, had.validation) {
        let problem = format!("{} has these webhooks already", resource.describe());
        return Err(Error::refused(problem, format!("they are in src/{}/webhook.rs", resource.module())));
    }
    next.resources[at].webhooks = Some(Webhooks {
        defaulting: had.defaulting || request.defaulting,
        validation: had.validation || request.validation,
        webhook_version: "v1".into(),
        ..had
    });
    step(&root, &project, &next, force)
}

/// Removes webhooks from a kind: those that are named, or all but the conversion.
pub fn delete_webhook(
    folder: &Path,
    target: &Target,
    request: WebhookRequest,
    force: bool,
) -> Result<Plan, Error> {
    let (root, project) = Project::find(folder)?;
    recover(&root)?;
    let at = target.find(&project)?;
    let resource = &project.resources[at];
    if request.conversion {
        let hint = "delete the versions that are converted: windlass delete api with their --version";
        return Err(Error::refused("several versions cannot be without a conversion", hint));
    }
    let had = resource.webhooks.clone().unwrap_or_default();
    let all = !(request.defaulting || request.validation);
    let (defaulting, validation) = (all || request.defaulting, all || request.validation);
    if !((defaulting && had.defaulting) || (validation && had.validation)) {
        let problem = format!("{} has no such webhook", resource.describe());
        return Err(Error::refused(problem, "PROJECT lists what there is"));
    }
    let left = Webhooks {
        defaulting: had.defaulting && !defaulting,
        validation: had.validation && !validation,
        ..had
    };
    let mut next = project.clone();
    let some = left.defaulting || left.validation || left.conversion;
    next.resources[at].webhooks = some.then_some(left);
    step(&root, &project, &next, force)
}
