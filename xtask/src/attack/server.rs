//! The server under attack: a process with a data directory, what the system says of it, and its end by its id.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use super::client::Api;

/// How long a server may take until it is ready.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How large the small disk is.
pub(super) const SMALL: u64 = 48 << 20;

/// What the data directory lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The disk of this machine.
    Disk,
    /// A file system of its own of [`SMALL`] bytes, in a mount namespace that ends with the server.
    SmallDisk,
}

/// A running server.
pub(super) struct Server {
    program: PathBuf,
    /// What keeps the small disk mounted, if it is on one.
    holder: Option<Child>,
    process: Child,
    folder: tempfile::TempDir,
    api: Api,
}

/// Thousands of connections need as many files, here and in the server, which inherits the limit.
pub(super) fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("failed to raise the limit of open files")
}

impl Server {
    pub(super) fn start(program: &Path, place: Place) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("windlass-attack-").tempdir()?;
        fs::create_dir(folder.path().join("disk"))?;
        let mut holder = match place {
            Place::Disk => None,
            Place::SmallDisk => Some(mount(&folder.path().join("disk"))?),
        };
        let disk = disk(folder.path(), holder.as_ref());
        let started = spawn(program, &disk, folder.path()).and_then(|mut process| {
            match ready(&mut process, folder.path()) {
                Ok(api) => Ok((process, api)),
                Err(error) => {
                    end(&mut process);
                    Err(error)
                }
            }
        });
        match started {
            Ok((process, api)) => Ok(Self { program: program.into(), holder, process, folder, api }),
            Err(error) => {
                holder.iter_mut().for_each(end);
                Err(error)
            }
        }
    }

    /// Ends the process and starts another one on the same data directory.
    pub(super) fn restart(&mut self, gently: bool) -> Result<()> {
        if gently {
            self.terminate()?;
        } else {
            end(&mut self.process);
        }
        let _ = fs::remove_file(kubeconfig(self.folder.path()));
        self.process = spawn(&self.program, &self.disk(), self.folder.path())?;
        self.api = ready(&mut self.process, self.folder.path())?;
        Ok(())
    }

    /// Asks the process to end, and tells how long that took.
    pub(super) fn terminate(&mut self) -> Result<Duration> {
        let begin = Instant::now();
        let pid = Pid::from_raw(self.pid()).context("a process must have an id")?;
        kill_process(pid, Signal::TERM).context("failed to send SIGTERM")?;
        while self.process.try_wait()?.is_none() {
            if begin.elapsed() > TIMEOUT {
                bail!("SIGTERM did not end the server within {} s", TIMEOUT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(begin.elapsed())
    }

    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    pub(super) fn pid(&self) -> i32 {
        self.process.id().cast_signed()
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// The data directory, as this process reaches it.
    pub(super) fn data(&self) -> PathBuf {
        self.disk().join("data")
    }

    /// The file system that the data directory lies on.
    pub(super) fn disk(&self) -> PathBuf {
        disk(self.folder.path(), self.holder.as_ref())
    }

    fn status(&self, field: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let line = line.with_context(|| format!("/proc/PID/status has no {field}"))?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0 / 1e6)
    }

    /// Megabytes in memory now.
    pub(super) fn resident(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    /// Megabytes in memory at most since [`Self::forget_peak`].
    pub(super) fn peak(&self) -> Result<f64> {
        self.status("VmHWM:")
    }

    /// Begins a new measurement of the most memory.
    pub(super) fn forget_peak(&self) -> Result<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.pid()), "5")?)
    }

    /// Seconds of processor time that the process has used.
    pub(super) fn processor_seconds(&self) -> Result<f64> {
        crate::bench::processor_seconds(self.pid())
    }

    /// Whether the process is at rest: it uses little processor time while nobody asks for anything.
    pub(super) async fn is_idle(&self) -> Result<bool> {
        let before = self.processor_seconds()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(self.processor_seconds()? - before < 0.5)
    }

    /// The addresses that the process is connecting or connected to, as the kernel writes them.
    pub(super) fn connections(&self) -> Result<String> {
        Ok(fs::read_to_string(format!("/proc/{}/net/tcp", self.pid()))?)
    }

    fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(log(self.folder.path()))?).into_owned())
    }

    /// Whether a panic was told of.
    pub(super) fn has_panicked(&self) -> Result<bool> {
        Ok(self.log()?.contains("panicked"))
    }

    /// The end of what the process wrote, for whoever looks for the reason.
    pub(super) fn last_words(&self) -> String {
        let log = self.log().unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].iter().flat_map(|line| ["\n    ", *line]).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
        self.holder.iter_mut().for_each(end);
    }
}

fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

/// Mounts a small disk in a mount namespace of its own, for as long as the process lives.
fn mount(folder: &Path) -> Result<Child> {
    let script =
        format!("mount -t tmpfs -o size={SMALL} tmpfs \"$0\" && touch \"$0/mounted\" && exec sleep 3600");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--map-root-user", "--propagation", "private", "sh", "-c"])
        .arg(script)
        .arg(folder);
    let mut process =
        command.stdin(Stdio::null()).spawn().context("failed to start unshare (Debian: util-linux)")?;
    let (begin, mark) = (Instant::now(), inside(&process, &folder.join("mounted")));
    while !mark.exists() {
        if process.try_wait()?.is_some() || begin.elapsed() > TIMEOUT {
            end(&mut process);
            bail!("failed to mount a small disk in a namespace");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(process)
}

/// A path as a process in another mount namespace sees it.
fn inside(process: &Child, path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    Path::new("/proc").join(process.id().to_string()).join("root").join(path)
}

fn disk(folder: &Path, holder: Option<&Child>) -> PathBuf {
    let disk = folder.join("disk");
    holder.map_or_else(|| disk.clone(), |holder| inside(holder, &disk))
}

fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn spawn(program: &Path, disk: &Path, folder: &Path) -> Result<Child> {
    let log = fs::OpenOptions::new().create(true).append(true).open(log(folder))?.into_parts().0;
    let mut command = Command::new(program);
    command.args(["cluster", "up", "--port", "0", "--data-dir"]).arg(disk.join("data"));
    command.arg("--kubeconfig").arg(kubeconfig(folder)).current_dir(folder);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().with_context(|| format!("failed to start {}", program.display()))
}

fn ready(process: &mut Child, folder: &Path) -> Result<Api> {
    let (begin, kubeconfig) = (Instant::now(), kubeconfig(folder));
    // The file is written and then named, so what is there is whole.
    while !kubeconfig.exists() {
        if process.try_wait()?.is_some() || begin.elapsed() > TIMEOUT {
            let log = fs::read_to_string(log(folder))?;
            bail!("`windlass cluster up` did not become ready:\n{}", log.trim_end());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Api::read(&kubeconfig)
}
