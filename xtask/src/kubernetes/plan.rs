//! What a testbed runs: command lines and configuration files, as data.
//!
//! Enter addresses, ports and directories; leaves a [`Plan`] that the supervisor carries out. Nothing here starts
//! or writes anything, so what a testbed is made of can be read, and tested, in one place.

mod files;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::network::SERVICES;

pub(super) use files::{ConfigFile, control_plane_files, node_files};

/// The name of a testbed's only node.
pub(super) const NODE_NAME: &str = "node1";
/// Where containerd listens, in the box's own `/run`.
pub(super) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// Where the control plane listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoints {
    pub(super) address: Ipv4Addr,
    pub(super) api: u16,
    pub(super) etcd_client: u16,
    pub(super) etcd_peer: u16,
}

impl Endpoints {
    pub(super) fn server(&self) -> String {
        format!("https://{}:{}", self.address, self.api)
    }
}

/// When a component may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// At once: it waits for nothing, or knows how to wait.
    First,
    /// When the API server answers: it gives up on a server that is slow to come.
    AfterApi,
}

/// One process of the testbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) stage: Stage,
}

/// Everything the supervisor needs to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) kubectl: PathBuf,
    pub(super) components: Vec<Component>,
    /// The address to take inside the box; none outside of one.
    pub(super) inside: Option<Ipv4Addr>,
    /// Archives to load into the node.
    pub(super) images: Vec<PathBuf>,
}

/// The components of a control plane.
pub(super) fn control_plane(
    layout: &Layout,
    binaries: &Path,
    endpoints: &Endpoints,
    node: bool,
) -> Vec<Component> {
    let component = |name: &str, stage, args| Component {
        name: name.to_owned(),
        program: binaries.join(name),
        args,
        stage,
    };
    vec![
        component("etcd", Stage::First, etcd(layout, endpoints)),
        component("kube-apiserver", Stage::First, api_server(layout, endpoints, node)),
        component("kube-controller-manager", Stage::AfterApi, controller_manager(layout)),
        component("kube-scheduler", Stage::AfterApi, scheduler(layout)),
    ]
}

/// The components of a node.
pub(super) fn node(layout: &Layout, binaries: &Path, address: Ipv4Addr) -> Vec<Component> {
    let kubelet = flags(&[
        ("config", &path(layout, "kubelet.yaml")),
        ("kubeconfig", &path(layout, "kubelet.kubeconfig")),
        ("root-dir", &path(layout, "kubelet")),
        ("cert-dir", &path(layout, "kubelet/pki")),
        ("hostname-override", NODE_NAME),
        ("node-ip", &address.to_string()),
    ]);
    let proxy = flags(&[("config", &path(layout, "kube-proxy.yaml"))]);
    vec![
        Component {
            name: "containerd".to_owned(),
            program: "containerd".into(),
            args: flags(&[("config", &path(layout, "containerd.toml"))]),
            stage: Stage::First,
        },
        Component {
            name: "kubelet".to_owned(),
            program: binaries.join("kubelet"),
            args: kubelet,
            stage: Stage::AfterApi,
        },
        Component {
            name: "kube-proxy".to_owned(),
            program: binaries.join("kube-proxy"),
            args: proxy,
            stage: Stage::AfterApi,
        },
    ]
}

/// What provides volumes on the node: a part of this program.
pub(super) fn storage(layout: &Layout, program: &Path) -> Component {
    Component {
        name: "storage".to_owned(),
        program: program.to_owned(),
        args: vec!["kubernetes".to_owned(), "__storage".to_owned(), layout.run.display().to_string()],
        stage: Stage::AfterApi,
    }
}

fn etcd(layout: &Layout, endpoints: &Endpoints) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", endpoints.etcd_client);
    let peer = format!("http://127.0.0.1:{}", endpoints.etcd_peer);
    let mut args = flags(&[
        ("name", "testbed"),
        ("data-dir", &path(layout, "etcd")),
        ("listen-client-urls", &client),
        ("advertise-client-urls", &client),
        ("listen-peer-urls", &peer),
        ("initial-advertise-peer-urls", &peer),
        ("initial-cluster", &format!("testbed={peer}")),
        ("log-level", "warn"),
    ]);
    // A testbed's data need not survive a power cut, and syncing is most of a write's time.
    args.push("--unsafe-no-fsync".to_owned());
    args
}

fn api_server(layout: &Layout, endpoints: &Endpoints, node: bool) -> Vec<String> {
    let address = endpoints.address.to_string();
    let mut args = flags(&[
        ("etcd-servers", &format!("http://127.0.0.1:{}", endpoints.etcd_client)),
        ("bind-address", &address),
        ("advertise-address", &address),
        ("secure-port", &endpoints.api.to_string()),
        ("tls-cert-file", &path(layout, "pki/apiserver.crt")),
        ("tls-private-key-file", &path(layout, "pki/apiserver.key")),
        ("client-ca-file", &path(layout, "pki/ca.crt")),
        ("authorization-mode", "Node,RBAC"),
        ("enable-admission-plugins", "NodeRestriction"),
        ("service-account-issuer", "https://kubernetes.default.svc"),
        ("service-account-key-file", &path(layout, "pki/sa.pub")),
        ("service-account-signing-key-file", &path(layout, "pki/sa.key")),
        ("service-cluster-ip-range", &SERVICES.to_string()),
        ("allow-privileged", "true"),
    ]);
    if node {
        args.extend(flags(&[
            ("kubelet-preferred-address-types", "InternalIP"),
            ("kubelet-certificate-authority", &path(layout, "pki/ca.crt")),
            ("kubelet-client-certificate", &path(layout, "pki/kubelet-client.crt")),
            ("kubelet-client-key", &path(layout, "pki/kubelet-client.key")),
        ]));
    } else {
        // An endpoint may not have a loopback address, and without a node nobody would use it.
        args.extend(flags(&[("endpoint-reconciler-type", "none")]));
    }
    args
}

fn controller_manager(layout: &Layout) -> Vec<String> {
    flags(&[
        ("kubeconfig", &path(layout, "controller-manager.kubeconfig")),
        ("service-account-private-key-file", &path(layout, "pki/sa.key")),
        ("root-ca-file", &path(layout, "pki/ca.crt")),
        ("cluster-signing-cert-file", &path(layout, "pki/ca.crt")),
        ("cluster-signing-key-file", &path(layout, "pki/ca.key")),
        ("use-service-account-credentials", "true"),
        ("leader-elect", "false"),
        ("secure-port", "0"),
        // The default of 20 requests a second is for shared clusters; tests would wait for it.
        ("kube-api-qps", "200"),
        ("kube-api-burst", "400"),
    ])
}

fn scheduler(layout: &Layout) -> Vec<String> {
    flags(&[
        ("kubeconfig", &path(layout, "scheduler.kubeconfig")),
        ("leader-elect", "false"),
        ("secure-port", "0"),
    ])
}

fn path(layout: &Layout, relative: &str) -> String {
    layout.path(relative).display().to_string()
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout { name: "a".to_owned(), run: "/r/a".into() }
    }

    fn endpoints(address: &str) -> Endpoints {
        Endpoints { address: address.parse().unwrap(), api: 6443, etcd_client: 2379, etcd_peer: 2380 }
    }

    fn args_of<'a>(components: &'a [Component], name: &str) -> &'a [String] {
        &components.iter().find(|component| component.name == name).unwrap().args
    }

    #[test]
    fn the_api_server_authorizes_with_rbac_and_trusts_only_the_testbeds_authority() {
        let components = control_plane(&layout(), Path::new("/bin"), &endpoints("10.99.0.2"), true);
        let args = args_of(&components, "kube-apiserver");
        for expected in [
            "--authorization-mode=Node,RBAC",
            "--client-ca-file=/r/a/pki/ca.crt",
            "--bind-address=10.99.0.2",
            "--kubelet-certificate-authority=/r/a/pki/ca.crt",
            "--allow-privileged=true",
        ] {
            assert!(args.iter().any(|arg| arg == expected), "{expected} is missing");
        }
        assert!(!args.iter().any(|arg| arg.starts_with("--token-auth-file") || arg.contains("insecure")));
    }

    #[test]
    fn a_control_plane_without_a_node_names_no_kubelet() {
        let components = control_plane(&layout(), Path::new("/bin"), &endpoints("127.0.0.1"), false);
        let args = args_of(&components, "kube-apiserver");
        assert!(!args.iter().any(|arg| arg.contains("kubelet")));
        assert!(args.iter().any(|arg| arg == "--endpoint-reconciler-type=none"));
    }

    #[test]
    fn what_gives_up_on_a_slow_api_server_starts_after_it() {
        let mut components = control_plane(&layout(), Path::new("/bin"), &endpoints("10.99.0.2"), true);
        components.extend(node(&layout(), Path::new("/bin"), Ipv4Addr::new(10, 99, 0, 2)));
        let first: Vec<_> = components
            .iter()
            .filter(|c| c.stage == Stage::First)
            .map(|component| component.name.as_str())
            .collect();
        assert_eq!(first, ["etcd", "kube-apiserver", "containerd"]);
    }

    #[test]
    fn no_flag_is_given_twice() {
        let mut components = control_plane(&layout(), Path::new("/bin"), &endpoints("10.99.0.2"), true);
        components.extend(node(&layout(), Path::new("/bin"), Ipv4Addr::new(10, 99, 0, 2)));
        for component in components {
            let mut names: Vec<_> = component.args.iter().map(|arg| arg.split('=').next()).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{} repeats a flag", component.name);
        }
    }
}
