//! The same for the seven operators, or some of them.

use windlass::Placement;
use windlass_deploy::Release;
use windlass_operators::manifests;

use crate::{
    args::{
        DeployArgs, OperatorsDeployArgs, OperatorsInstallArgs, OperatorsUndeployArgs, OperatorsUninstallArgs,
    },
    error::Error,
    printer::Printer,
};

pub(crate) async fn install(args: &OperatorsInstallArgs, printer: Printer) -> Result<(), Error> {
    super::install(&args.common, &release(&args.which.only)?, printer).await
}

pub(crate) async fn uninstall(args: &OperatorsUninstallArgs, printer: Printer) -> Result<(), Error> {
    super::uninstall(&args.common, &release(&args.which.only)?, printer).await
}

pub(crate) async fn deploy(args: &OperatorsDeployArgs, printer: Printer) -> Result<(), Error> {
    let DeployArgs { namespace, image, replicas, .. } = &args.common;
    let place = args.placed.over(placed(&args.which.only, namespace.as_deref(), image.as_deref(), *replicas));
    let release = release_at(&args.which.only, &place)?;
    super::deploy(&args.common, &release, printer).await
}

pub(crate) async fn undeploy(args: &OperatorsUndeployArgs, printer: Printer) -> Result<(), Error> {
    let place = args.placed.over(placed(&args.which.only, args.common.namespace.as_deref(), None, None));
    let release = release_at(&args.which.only, &place)?;
    super::undeploy(&args.common, &release, printer).await
}

/// What `config/` has.
fn release(only: &[String]) -> Result<Release, Error> {
    release_at(only, &placed(only, None, None, None))
}

fn release_at(only: &[String], placement: &Placement) -> Result<Release, Error> {
    Ok(Release::new(manifests::shipped(only).manifests(placement))?)
}

/// Where `config/` has it, but for what was asked for.
fn placed(only: &[String], namespace: Option<&str>, image: Option<&str>, replicas: Option<u32>) -> Placement {
    let usual = manifests::namespace(only);
    let mut placement = manifests::placement(namespace.unwrap_or(&usual), image.unwrap_or(manifests::IMAGE));
    placement.replicas = replicas.unwrap_or(placement.replicas);
    placement
}
