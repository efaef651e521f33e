//! What the machine must bring: programs, plugins and root. Checked before anything is started.
//!
//! Enters what is about to be done; leaves nothing, or one error that names all that is missing.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::state::Mode;
use super::tools::find;

const GO: &str =
    "Go is missing and Kubernetes must be built: install Go 1.26 or later (https://go.dev/doc/install)";

/// Where distributions put the CNI plugins: Debian and Fedora first, the upstream default last.
const CNI_DIRECTORIES: [&str; 3] = ["/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"];
const CNI_PLUGINS: [&str; 4] = ["bridge", "host-local", "loopback", "portmap"];

/// A program that the node needs, and the Debian package that has it.
const NODE_PROGRAMS: [(&str, &str); 12] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("iptables-save", "iptables"),
    ("conntrack", "conntrack"),
    ("ip", "iproute2"),
    ("hostname", "hostname"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("umount", "mount"),
];

/// What a testbed of `mode` needs, and Go if there is something to build.
pub(super) fn check(mode: Mode, build: bool) -> Result<()> {
    let has = |program: &str| find(program).is_some();
    let mut problems = Vec::new();
    let packages = match mode {
        Mode::Node => missing_packages(&has, cni_directory().is_some(), busybox().is_some()),
        Mode::ControlPlane | Mode::ApiServer if has("setpriv") => Vec::new(),
        Mode::ControlPlane | Mode::ApiServer => vec!["util-linux"],
    };
    if !packages.is_empty() {
        problems.push(format!("programs are missing; on Debian: apt-get install {}", packages.join(" ")));
    }
    problems.extend((build && !has("go")).then(|| GO.to_owned()));
    if mode == Mode::Node && !rustix::process::geteuid().is_root() {
        problems
            .push("a node needs root: run as root, or use `up --control-plane`, which needs none".to_owned());
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n  and: "));
    }
    Ok(())
}

/// Go, for building the programs.
pub(super) fn go() -> Result<()> {
    if find("go").is_none() {
        bail!(GO);
    }
    Ok(())
}

fn missing_packages(has: &dyn Fn(&str) -> bool, has_cni: bool, has_busybox: bool) -> Vec<&'static str> {
    let mut packages: Vec<&str> =
        NODE_PROGRAMS.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    if !has_cni {
        packages.push("containernetworking-plugins");
    }
    if !has_busybox {
        packages.push("busybox-static");
    }
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// The directory that holds every CNI plugin the testbed uses.
pub(super) fn cni_directory() -> Option<&'static Path> {
    CNI_DIRECTORIES
        .iter()
        .map(Path::new)
        .find(|directory| CNI_PLUGINS.iter().all(|plugin| directory.join(plugin).is_file()))
}

/// A statically linked busybox, the content of the images that every node starts with.
pub(super) fn busybox() -> Option<PathBuf> {
    find("busybox").filter(|path| fs_err::read(path).is_ok_and(|elf| super::images::is_static(&elf)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_package_is_named_once() {
        let has = |program: &str| !matches!(program, "containerd" | "ctr" | "runc");
        assert_eq!(missing_packages(&has, true, true), ["containerd", "runc"]);
        assert_eq!(
            missing_packages(&|_| true, false, false),
            ["busybox-static", "containernetworking-plugins"]
        );
        assert_eq!(missing_packages(&|_| true, true, true), [""; 0]);
    }
}
