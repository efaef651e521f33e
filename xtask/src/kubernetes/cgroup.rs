//! A box's own place in the cgroup hierarchies, of version 1, 2 or both.
//!
//! Enters a testbed's layout; leave the directories `PARENT/NAME`, which the box sees as the root of its cgroup
//! namespace. So two boxes never share a `k8s.io` directory, and whatever a box started is found by its cgroup,
//! even when every record of it is lost.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::layout::Layout;
use super::process;
use super::tools::run;

const FILESYSTEM: &str = "/sys/fs/cgroup";

/// One mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    mount: PathBuf,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 1, with the mount options that name its controllers.
    V1(String),
    V2,
}

/// The hierarchies of this machine, as the kernel lists them.
fn hierarchies() -> Result<Vec<Hierarchy>> {
    let found = parse_mounts(&fs::read_to_string("/proc/self/mounts")?);
    if found.is_empty() {
        bail!("no cgroup filesystem is mounted under {FILESYSTEM}: a node needs one");
    }
    Ok(found)
}

fn parse_mounts(mounts: &str) -> Vec<Hierarchy> {
    let parse = |line: &str| {
        let mut fields = line.split(' ');
        let (_, mount, kind, options) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        if !mount.starts_with(FILESYSTEM) {
            return None;
        }
        let kind = match kind {
            "cgroup2" => Kind::V2,
            "cgroup" => Kind::V1(controllers(options)),
            _ => return None,
        };
        Some(Hierarchy { mount: mount.into(), kind })
    };
    mounts.lines().filter_map(parse).collect()
}

/// The options that say which hierarchy it is, without those that say how it is mounted.
fn controllers(options: &str) -> String {
    const MANNER: [&str; 10] = [
        "rw",
        "ro",
        "relatime",
        "noatime",
        "nosuid",
        "nodev",
        "noexec",
        "seclabel",
        "xattr",
        "clone_children",
    ];
    let named: Vec<_> = options
        .split(',')
        .filter(|option| !MANNER.contains(option) && !option.starts_with("release_agent"))
        .collect();
    // A hierarchy without controllers must be asked for as such.
    if named.iter().all(|option| option.starts_with("name=")) {
        format!("none,{}", named.join(","))
    } else {
        named.join(",")
    }
}

/// The directory in each hierarchy that all testbeds of one run root share: `/tmp/windlass-0` becomes
/// `windlass-tmp-windlass-0`. Testbeds of two run roots may have one name and still never meet.
fn parent(layout: &Layout) -> String {
    let root = layout.run.parent().unwrap_or(&layout.run);
    format!("windlass{}", root.to_string_lossy().replace('/', "-"))
}

impl Hierarchy {
    fn directory(&self, layout: &Layout) -> PathBuf {
        self.mount.join(parent(layout)).join(&layout.name)
    }

    fn create(&self, layout: &Layout) -> Result<()> {
        for directory in [self.mount.join(parent(layout)), self.directory(layout)] {
            if !directory.is_dir() {
                fs::create_dir(&directory)?;
            }
            let above = directory.parent().expect("a cgroup must lie below its mount");
            match self.kind {
                Kind::V2 => delegate(above),
                Kind::V1(_) => inherit_cpuset(above, &directory)?,
            }
        }
        Ok(())
    }
}

/// Lets children of a version 2 group have every controller it has. In a hybrid set-up it has none, and a
/// controller that cannot be passed on is missed, with its name, by whoever needs it.
fn delegate(directory: &Path) {
    let Ok(available) = fs::read_to_string(directory.join("cgroup.controllers")) else { return };
    for controller in available.split_whitespace() {
        let _ = fs::write(directory.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

/// A new version 1 cpuset is empty, and an empty one accepts no process.
fn inherit_cpuset(above: &Path, directory: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if directory.join(file).exists() && fs::read_to_string(directory.join(file))?.trim().is_empty() {
            fs::write(directory.join(file), fs::read_to_string(above.join(file))?)?;
        }
    }
    Ok(())
}

/// Makes the directories of a testbed in every hierarchy.
pub(super) fn create(layout: &Layout) -> Result<()> {
    hierarchies()?.iter().try_for_each(|hierarchy| hierarchy.create(layout))
}

/// Moves this process into them. What it starts from now on is counted there.
pub(super) fn enter(layout: &Layout) -> Result<()> {
    for hierarchy in hierarchies()? {
        fs::write(hierarchy.directory(layout).join("cgroup.procs"), std::process::id().to_string())
            .context("failed to enter the box's cgroup")?;
    }
    Ok(())
}

/// From inside a new cgroup namespace: mounts the hierarchies again, so that the box sees only its own part.
pub(super) fn remount_inside() -> Result<()> {
    let hierarchies = hierarchies()?;
    let hybrid = hierarchies.iter().any(|hierarchy| matches!(hierarchy.kind, Kind::V1(_)));
    for Hierarchy { mount, kind } in hierarchies {
        let target = mount.to_string_lossy();
        run("umount", &["--lazy", &target])?;
        match kind {
            Kind::V1(options) => {
                run("mount", &["-t", "cgroup", "-o", &options, "cgroup", &target])?;
            }
            // Container runtimes disagree about hybrid set-ups; version 1 alone is understood by all.
            Kind::V2 if hybrid => {}
            Kind::V2 => {
                run("mount", &["-t", "cgroup2", "cgroup2", &target])?;
                make_room(&mount)?;
            }
        }
    }
    Ok(())
}

/// A version 2 group with processes cannot pass its controllers on, so the box's own move one step down.
fn make_room(root: &Path) -> Result<()> {
    let own = root.join("box");
    fs::create_dir(&own)?;
    for pid in fs::read_to_string(root.join("cgroup.procs"))?.lines() {
        // A process may end in between; the one that stays is the one that moves.
        let _ = fs::write(own.join("cgroup.procs"), pid);
    }
    delegate(root);
    Ok(())
}

/// Whether a testbed has left anything here.
pub(super) fn exists(layout: &Layout) -> bool {
    hierarchies().is_ok_and(|all| all.iter().any(|hierarchy| hierarchy.directory(layout).exists()))
}

/// The names of all testbeds beside `layout` that have a cgroup, with or without any other record.
pub(super) fn names(layout: &Layout) -> Vec<String> {
    let mut names: Vec<String> = hierarchies()
        .unwrap_or_default()
        .iter()
        .flat_map(|hierarchy| subdirectories(&hierarchy.mount.join(parent(layout))))
        .filter_map(|directory| Some(directory.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Ends every process of a testbed and removes its directories.
pub(super) fn remove(layout: &Layout) -> Result<()> {
    let hierarchies = hierarchies()?;
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut left = Vec::new();
        for hierarchy in &hierarchies {
            empty(&hierarchy.directory(layout), &mut left);
        }
        if left.is_empty() {
            break;
        }
        if Instant::now() > deadline {
            bail!("failed to remove the cgroup {}: it still has processes", left[0].display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for hierarchy in &hierarchies {
        // Another testbed may still use the shared directory.
        let _ = fs::remove_dir(hierarchy.mount.join(parent(layout)));
    }
    Ok(())
}

/// Kills and removes `directory` from its leaves up; what could not be removed yet goes to `left`.
fn empty(directory: &Path, left: &mut Vec<PathBuf>) {
    if !directory.exists() {
        return;
    }
    for child in subdirectories(directory) {
        empty(&child, left);
    }
    // A v1 freezer may hold its processes still, and a frozen process cannot die.
    let _ = fs::write(directory.join("freezer.state"), "THAWED");
    let processes = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0) {
        process::kill_pid(pid);
    }
    if fs::remove_dir(directory).is_err() && directory.exists() {
        left.push(directory.to_owned());
    }
}

fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<_> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_under_two_run_roots_is_two_cgroups() {
        let parent = |run: &str| parent(&Layout::at(Path::new(run)).unwrap());
        assert_eq!(parent("/tmp/windlass-0/default"), "windlass-tmp-windlass-0");
        assert_ne!(parent("/tmp/windlass-0/default"), parent("/tmp/ci/default"));
    }

    #[test]
    fn the_kernels_list_becomes_hierarchies() {
        let mounts = "\
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime,nsdelegate 0 0
cgroup2 /elsewhere cgroup2 rw 0 0
";
        let v1 = |mount: &str, options: &str| Hierarchy {
            mount: mount.into(),
            kind: Kind::V1(options.to_owned()),
        };
        assert_eq!(
            parse_mounts(mounts),
            [
                v1("/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct"),
                v1("/sys/fs/cgroup/systemd", "none,name=systemd"),
                Hierarchy { mount: "/sys/fs/cgroup/unified".into(), kind: Kind::V2 },
            ]
        );
    }
}
