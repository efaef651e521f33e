//! `windlass cluster backup|restore`: the objects of a cluster as one file, and a new cluster of that file.

use std::path::{Path, PathBuf};

use windlass_cluster::Copied;

use crate::{
    args::{BackupArgs, RestoreArgs},
    clusters::{ClusterDirectory, Error as ClustersError, Home, State},
    error::Error,
    printer::Printer,
};

/// Reads the files of the cluster, which may go on running.
pub(in crate::commands) fn backup(args: &BackupArgs, printer: Printer) -> Result<(), Error> {
    let (name, data) = match &args.data_dir {
        Some(path) => (path.display().to_string(), path.clone()),
        None => {
            let place = Home::find()?.known(&args.cluster.name)?;
            (place.name().to_owned(), data_directory(&place)?)
        }
    };
    let copied = windlass_cluster::backup(&data, &args.file)
        .map_err(|source| ClustersError::Backup { name: name.clone(), source })?;
    tell(printer, "backed up", &name, copied, &args.file)
}

/// Where the objects are.
fn data_directory(place: &ClusterDirectory) -> Result<PathBuf, Error> {
    match place.state()? {
        State::Running(facts) => {
            Ok(facts.data_dir.ok_or_else(|| ClustersError::InMemory(place.name().to_owned()))?)
        }
        State::Starting => Err(ClustersError::Starting(place.name().to_owned()).into()),
        State::Stopped | State::Dead(_) => Ok(place.data()),
    }
}

pub(in crate::commands) async fn restore(args: &RestoreArgs, printer: Printer) -> Result<(), Error> {
    let place = Home::find()?.place(&args.name);
    let name = args.name.clone();
    let made = place.create(async |data: &Path| {
        windlass_cluster::restore(&args.file, data).map_err(|source| ClustersError::Restore { name, source })
    });
    let copied = made.await?;
    tell(printer, "restored", &args.name, copied, &args.file)?;
    super::suggest_start(printer, &args.name)
}

fn tell(printer: Printer, what: &str, name: &str, copied: Copied, file: &Path) -> Result<(), Error> {
    let Copied { revision, objects } = copied;
    printer.remark(what, name, format_args!("{objects} objects at revision {revision}"))?;
    printer.fact("file", file.display())
}
