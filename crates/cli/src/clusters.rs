//! The clusters that have a name: where the state of each is, whether it runs, and how it is told to stop.
//!
//! ```text
//! HOME/clusters/NAME/lock           held by the process that runs the cluster, and by nothing else
//! HOME/clusters/NAME/cluster.json   what is known of it, while it runs
//! HOME/clusters/NAME/kubeconfig     as long as it runs
//! HOME/clusters/NAME/log            what it said, if it runs in the background
//! HOME/clusters/NAME/data/          its objects, unless they are in memory
//! HOME/clusters/NAME/stop           somebody wants it to stop
//! ```
//!
//! A process is never looked for by its number, which another may have by now: whoever holds the lock runs the cluster,
//! and it stops by itself when the file `stop` appears.

mod error;
mod home;
mod log;

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use windlass::jiff::Timestamp;

pub(crate) use self::{
    error::Error,
    home::{DEFAULT, Home, check_name},
    log::last_words,
};
use crate::server::ServerArgs;

/// How often a process that runs a cluster looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// How long a process that only looks at a lock may keep another from taking it.
const LOOKED_AT: Duration = Duration::from_millis(500);

/// What is known of a running cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Facts {
    pub(crate) pid: u32,
    pub(crate) url: String,
    pub(crate) port: u16,
    pub(crate) kubeconfig: PathBuf,
    /// Where its objects are; nowhere if they are in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Where its log is, if it runs in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<PathBuf>,
    /// The link of its page, with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<String>,
    pub(crate) nodes: u16,
    pub(crate) fsync: bool,
    pub(crate) started: Timestamp,
    /// What was said of its API server.
    #[serde(default, skip_serializing_if = "ServerArgs::is_empty")]
    pub(crate) server: Box<ServerArgs>,
    /// The version of Windlass that runs it.
    pub(crate) version: String,
}

impl Facts {
    /// Whether it runs in the background.
    pub(crate) fn is_detached(&self) -> bool {
        self.log.is_some()
    }
}

/// How a named cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its process holds the lock and has said that it is ready.
    Running(Facts),
    /// Its process holds the lock.
    Starting,
    /// Its process ended without an end, or did not come to run.
    Dead(String),
    /// It was stopped.
    Stopped,
}

/// The folder of one named cluster, which may not be there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterDirectory {
    name: String,
    folder: PathBuf,
}

impl ClusterDirectory {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn exists(&self) -> bool {
        self.folder.is_dir()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn lock_file(&self) -> PathBuf {
        self.folder.join("lock")
    }

    fn facts_file(&self) -> PathBuf {
        self.folder.join("cluster.json")
    }

    fn stop_file(&self) -> PathBuf {
        self.folder.join("stop")
    }

    /// Makes the folder, for its owner alone: it will hold keys.
    pub(crate) fn make(&self) -> Result<(), Error> {
        home::make_private(&self.folder).map_err(error::failed("make the folder", &self.folder))
    }

    /// How the cluster is now.
    pub(crate) fn state(&self) -> Result<State, Error> {
        let facts = self.facts()?;
        Ok(match (self.is_held()?, facts) {
            (true, Some(facts)) => State::Running(facts),
            (true, None) => State::Starting,
            (false, Some(_)) => State::Dead(
                log::last_error(&self.log())
                    .unwrap_or_else(|| "its process was killed, or the machine went down".into()),
            ),
            (false, None) => match log::last_error(&self.log()) {
                Some(error) => State::Dead(error),
                None => State::Stopped,
            },
        })
    }

    /// What the running cluster says of itself, or why it does not.
    pub(crate) fn running(&self) -> Result<Facts, Error> {
        match self.state()? {
            State::Running(facts) => Ok(facts),
            State::Starting => Err(Error::Starting(self.name.clone())),
            State::Stopped | State::Dead(_) => Err(Error::NotRunning(self.name.clone())),
        }
    }

    fn facts(&self) -> Result<Option<Facts>, Error> {
        let path = self.facts_file();
        match fs::read(&path) {
            // One that cannot be read was written by another version, or not to its end.
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(error::failed("read", &path)(source)),
        }
    }

    /// Whether a process runs the cluster.
    fn is_held(&self) -> Result<bool, Error> {
        let path = self.lock_file();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(error::failed("open", &path)(source)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(error::failed("lock", &path)(source)),
        }
    }

    /// Makes this process the one that runs the cluster. The log of another run goes, unless this one writes it.
    pub(crate) fn take(&self, logs: bool) -> Result<Held, Error> {
        self.make()?;
        let path = self.lock_file();
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let lock = opened.map_err(error::failed("open", &path))?;
        let begin = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begin.elapsed() < LOOKED_AT => std::thread::sleep(LOOK / 10),
                Err(TryLockError::WouldBlock) => return Err(self.taken()),
                Err(TryLockError::Error(source)) => return Err(error::failed("lock", &path)(source)),
            }
        }
        let log = Some(self.log()).filter(|_| !logs);
        for left in [self.stop_file(), self.facts_file()].into_iter().chain(log) {
            remove_file(&left)?;
        }
        Ok(Held { place: self.clone(), _lock: lock })
    }

    /// What it means that somebody else holds the lock.
    pub(crate) fn taken(&self) -> Error {
        let pid = self.facts().ok().flatten().map(|facts| facts.pid);
        Error::AlreadyRunning { name: self.name.clone(), pid }
    }

    /// Tells the process that runs the cluster to stop, and waits until it has.
    pub(crate) fn stop(&self, patience: Duration) -> Result<(), Error> {
        let path = self.stop_file();
        fs::write(&path, "").map_err(error::failed("write", &path))?;
        let begin = Instant::now();
        while self.is_held()? {
            if begin.elapsed() > patience {
                let pid = self.facts()?.map(|facts| facts.pid);
                return Err(Error::NotStopped { name: self.name.clone(), pid, patience });
            }
            std::thread::sleep(LOOK / 5);
        }
        remove_file(&path)
    }

    /// Makes a cluster that is not there yet, whole or not at all: `fill` puts its data into a folder that has another name
    /// until it is done.
    pub(crate) async fn create<T, E: From<Error>>(
        &self,
        fill: impl AsyncFnOnce(&Path) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.exists() {
            return Err(Error::Exists(self.name.clone()).into());
        }
        let home = self.folder.parent().unwrap_or(&self.folder);
        home::make_private(home).map_err(error::failed("make the folder", home))?;
        // A dot keeps it out of the names of clusters, and it goes by itself unless it is kept.
        let prefix = format!(".{}.", self.name);
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(home);
        let folder = folder.map_err(error::failed("make a folder in", home))?;
        let filled = fill(&folder.path().join("data")).await?;
        let place = folder.keep();
        let renamed = if self.exists() {
            Err(Error::Exists(self.name.clone()))
        } else {
            fs::rename(&place, &self.folder).map_err(error::failed("name", &self.folder))
        };
        if let Err(error) = renamed {
            let _ = fs::remove_dir_all(&place);
            return Err(error.into());
        }
        Ok(filled)
    }

    /// Removes all that is known of the cluster. Nothing may run it.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.folder) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(error::failed("remove", &self.folder)(source))
            }
            _ => Ok(()),
        }
    }
}

/// The right to run a cluster. Ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Held {
    place: ClusterDirectory,
    _lock: File,
}

impl Held {
    pub(crate) fn place(&self) -> &ClusterDirectory {
        &self.place
    }

    /// Tells the world that the cluster is ready.
    pub(crate) fn ready(&self, facts: &Facts) -> Result<(), Error> {
        let path = self.place.facts_file();
        let text = serde_json::to_vec_pretty(facts).expect("facts must serialise");
        let write = || -> io::Result<()> {
            let file = tempfile::NamedTempFile::new_in(&self.place.folder)?;
            fs::write(file.path(), &text)?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(error::failed("write", &path))
    }

    /// Calls a function, on a thread of its own, once somebody wants the cluster to stop. One whose folder was
    /// removed can be found by nobody any more.
    pub(crate) fn on_stop(&self, call: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let place = self.place.clone();
        let watch = move || {
            while place.lock_file().exists() && !place.stop_file().exists() {
                std::thread::sleep(LOOK);
            }
            call();
        };
        let thread = std::thread::Builder::new().name("stop".into());
        thread.spawn(watch).map_err(error::failed("watch", &self.place.folder))?;
        Ok(())
    }

    /// The cluster was stopped, as it was asked to. What nobody needs any more goes.
    pub(crate) fn ended(self) -> Result<(), Error> {
        remove_file(&self.place.facts_file())?;
        if !self.place.data().exists() {
            // On Windows a file that is open stays; then it is an empty folder that is left.
            let _ = self.place.remove();
        }
        Ok(())
    }
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(error::failed("remove", path)(source)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
