//! `install` and `uninstall`: an operator into a cluster and out of it again, with the operator's own binary alone.

use std::{io::Write, time::Duration};

use clap::Args;

use super::{CliError, Connection, Operator, Target};
use crate::operator::{install, settings::Time};

/// How long the Deployment may take to come up.
const AVAILABLE: Duration = Duration::from_mins(5);
/// How long a new kind may take to be served.
const SERVED: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    pub(super) place: Target,
    /// The image of the operator, which is then installed with all that it needs; without it only the CRDs are
    #[arg(long)]
    image: Option<String>,
    /// How many replicas
    #[arg(long, default_value_t = 1)]
    replicas: u32,
    /// Wait until the kinds are served and the Deployment is available, for at most this long [default: 5m]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "5m")]
    wait: Option<Time>,
    /// Say what would be created and changed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    place: Target,
    /// Delete the CRDs too, before the operator that cleans up after their objects
    #[arg(long)]
    crds: bool,
    /// With --crds, delete the objects of their kinds as well, if there are this many; without it CRDs with objects stay
    #[arg(long, value_name = "NUMBER", requires = "crds")]
    delete_objects: Option<usize>,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn install(mut operator: Operator, args: InstallArgs) -> Result<(), CliError> {
    let client = args.connection.connected(&operator).await?;
    let whole = args.image.is_some();
    let placement = args.place.placement(&mut operator, args.image, args.replicas);
    let objects = if whole { operator.manifests(&placement) } else { operator.crd_manifests() };
    if args.dry_run {
        return say("", &install::preview(&client, operator.name(), &objects).await?);
    }
    say("applied ", &install::apply(&client, operator.name(), &objects).await?)?;
    let Some(limit) = args.wait else { return Ok(()) };
    install::await_served(&client, &objects, SERVED).await?;
    let limit = if limit.0.is_zero() { AVAILABLE } else { limit.0 };
    install::await_available(&client, &objects, limit).await?;
    say("", &["available".to_owned()])
}

pub(super) async fn uninstall(mut operator: Operator, args: UninstallArgs) -> Result<(), CliError> {
    let client = args.connection.connected(&operator).await?;
    let placement = args.place.placement(&mut operator, None, 1);
    let is_crd = |object: &serde_json::Value| object["kind"] == "CustomResourceDefinition";
    let (crds, others): (Vec<_>, Vec<_>) = operator.manifests(&placement).into_iter().partition(is_crd);
    if args.crds {
        let counted = install::count(&client, &crds).await?;
        let total = counted.iter().map(|(_, count)| count).sum();
        let lines: Vec<String> =
            counted.iter().map(|(name, count)| format!("{name} has {count} objects")).collect();
        say("", &lines)?;
        if total > 0 && args.delete_objects != Some(total) {
            return Err(CliError::Objects(total));
        }
    }
    if args.dry_run {
        if args.crds {
            say("would delete ", &install::present(&client, &crds).await?)?;
        }
        return say("would delete ", &install::present(&client, &others).await?);
    }
    if args.crds {
        // The operator is still there to finalize their objects.
        say("deleted ", &install::delete(&client, &crds).await?)?;
        install::await_gone(&client, &crds).await?;
    }
    say("deleted ", &install::delete(&client, &others).await?)?;
    if !args.crds {
        let kept = operator.crds().iter().filter_map(|crd| crd.metadata.name.as_deref());
        let kept: Vec<String> = kept.map(|name| format!("CustomResourceDefinition {name}")).collect();
        say("kept (delete it by --crds) ", &kept)?;
    }
    Ok(())
}

fn say(verb: &str, done: &[String]) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    for object in done {
        writeln!(stdout, "{verb}{object}").map_err(CliError::Stdout)?;
    }
    Ok(())
}
