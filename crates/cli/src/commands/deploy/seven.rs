//! The same for the seven operators, or some of them.

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
    super::install(&args.common, &release(&args.which.only, None, None, None)?, printer).await
}

pub(crate) async fn uninstall(args: &OperatorsUninstallArgs, printer: Printer) -> Result<(), Error> {
    super::uninstall(&args.common, &release(&args.which.only, None, None, None)?, printer).await
}

pub(crate) async fn deploy(args: &OperatorsDeployArgs, printer: Printer) -> Result<(), Error> {
    let DeployArgs { namespace, image, replicas, .. } = &args.common;
    let release = release(&args.which.only, namespace.as_deref(), image.as_deref(), *replicas)?;
    super::deploy(&args.common, &release, printer).await
}

pub(crate) async fn undeploy(args: &OperatorsUndeployArgs, printer: Printer) -> Result<(), Error> {
    let release = release(&args.which.only, args.common.namespace.as_deref(), None, None)?;
    super::undeploy(&args.common, &release, printer).await
}

/// What `config/` has, but for what was asked for.
fn release(
    only: &[String],
    namespace: Option<&str>,
    image: Option<&str>,
    replicas: Option<u32>,
) -> Result<Release, Error> {
    let usual = manifests::namespace(only);
    let mut placement = manifests::placement(namespace.unwrap_or(&usual), image.unwrap_or(manifests::IMAGE));
    placement.replicas = replicas.unwrap_or(placement.replicas);
    Ok(Release::new(manifests::shipped(only).manifests(&placement))?)
}
