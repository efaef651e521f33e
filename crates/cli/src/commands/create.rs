//! `windlass create` and `windlass delete`: a kind, a version of one, or its webhooks.

use std::{io, io::IsTerminal, path::Path};

use windlass_scaffold::{
    Plan,
    commands::{
        ApiRequest, Target, WebhookRequest, create_api, create_webhook, delete_api, delete_webhook,
        is_further_version,
    },
    names,
};

use super::scaffold::{Asked, carry_out, here, make, settle_lock};
use crate::{
    args::scaffold::{ApiArgs, ChangeArgs, DeleteApiArgs, KindArgs, WebhookArgs},
    error::Error,
    printer::Printer,
};

/// Group, version and kind, asked for where they are missing.
fn complete(of: &KindArgs) -> Result<Target, Error> {
    let mut asked = Asked::default();
    let group = asked.value("--group", of.group.as_ref(), "Group (such as cache)", names::group)?;
    let version =
        asked.value("--version", of.version.as_ref(), "Version (such as v1alpha1)", names::version)?;
    let kind = asked.value("--kind", of.kind.as_ref(), "Kind (such as Memcached)", names::kind)?;
    asked.complete()?;
    Ok(Target { group, version, kind })
}

fn read(path: &Path) -> Result<String, Error> {
    fs_err::read_to_string(path).map_err(|source| Error::ReadCrd { path: path.to_owned(), source })
}

/// Carries out a plan, then writes what follows from the code.
fn change(plan: &Plan, args: &ChangeArgs, printer: Printer) -> Result<(), Error> {
    carry_out(plan, args.dry_run, printer)?;
    if args.dry_run {
        return Ok(());
    }
    if plan.visible().any(|change| change.path() == "Cargo.toml") {
        settle_lock(&plan.root);
    }
    if args.make { make(&plan.root, printer) } else { Ok(()) }
}

pub(super) fn api(args: ApiArgs, printer: Printer) -> Result<(), Error> {
    // Before any question: what would a project be asked for that is not there?
    windlass_scaffold::Project::find(&here()?)?;
    let crd = args.from_crd.as_deref().map(read).transpose()?;
    let given = |flag: &Option<String>| flag.clone().unwrap_or_default();
    let Target { group, version, kind } = match crd {
        // The CRD knows what is not said.
        Some(_) => Target {
            group: given(&args.of.group),
            version: given(&args.of.version),
            kind: given(&args.of.kind),
        },
        None => complete(&args.of)?,
    };
    let mut request = ApiRequest {
        group,
        version,
        kind,
        plural: args.plural,
        namespaced: args.namespaced,
        controller: args.controller.unwrap_or(true),
        external: args.external || crd.is_some() || args.resource == Some(false),
        crd,
        image: args.image,
        port: args.port,
        run_as_user: args.run_as_user,
        finalizer: args.finalizer,
        hub: args.hub,
        force: args.force,
    };
    let further = is_further_version(&here()?, &request.group, &request.version, &request.kind)?;
    if further && !request.hub && io::stdin().is_terminal() {
        let question =
            format!("Store {} from now on, instead of the version that is there? (y/N)", request.version);
        request.hub = Asked::default().yes(&question)?;
    }
    change(&create_api(&here()?, &request)?, &args.change, printer)
}

fn webhooks(args: &WebhookArgs) -> WebhookRequest {
    WebhookRequest { defaulting: args.defaulting, validation: args.validation, conversion: args.conversion }
}

pub(super) fn webhook(args: &WebhookArgs, printer: Printer) -> Result<(), Error> {
    let target = complete(&args.of)?;
    change(&create_webhook(&here()?, &target, webhooks(args), args.force)?, &args.change, printer)
}

pub(super) fn remove_webhook(args: &WebhookArgs, printer: Printer) -> Result<(), Error> {
    let target = complete(&args.of)?;
    change(&delete_webhook(&here()?, &target, webhooks(args), args.force)?, &args.change, printer)
}

pub(super) fn remove_api(args: &DeleteApiArgs, printer: Printer) -> Result<(), Error> {
    let target = complete(&args.of)?;
    change(&delete_api(&here()?, &target, args.force)?, &args.change, printer)
}
