//! The files that the components read: certificates, kubeconfigs and configuration.
//!
//! Enter addresses and directories; leave paths relative to the run directory, with their contents.

use std::path::Path;

use anyhow::Result;

use super::{CONTAINERD_SOCKET, Endpoints, NODE_NAME, path};
use crate::kubernetes::certs::{self, Authority, Pair, User};
use crate::kubernetes::kubeconfig;
use crate::kubernetes::layout::Layout;
use crate::kubernetes::network::{BRIDGE, PODS};
use crate::kubernetes::release::Release;

/// A file to write before the start.
pub(in crate::kubernetes) struct ConfigFile {
    pub(in crate::kubernetes) path: String,
    pub(in crate::kubernetes) content: String,
}

fn file(path: impl Into<String>, content: impl Into<String>) -> ConfigFile {
    ConfigFile { path: path.into(), content: content.into() }
}

fn pair(name: &str, pair: Pair) -> [ConfigFile; 2] {
    [file(format!("pki/{name}.crt"), pair.certificate), file(format!("pki/{name}.key"), pair.key)]
}

/// The certificates and kubeconfigs of a control plane.
pub(in crate::kubernetes) fn control_plane_files(
    layout: &Layout,
    authority: &Authority,
    endpoints: &Endpoints,
) -> Result<Vec<ConfigFile>> {
    let keys = certs::service_account_keys()?;
    let mut files = vec![file("pki/sa.pub", keys.certificate), file("pki/sa.key", keys.key)];
    files.extend(pair("ca", authority.pair.clone()));
    files.extend(pair("apiserver", authority.api_server(endpoints.address)?));
    for (name, user) in [
        ("kubeconfig", certs::ADMIN),
        ("controller-manager.kubeconfig", certs::CONTROLLER_MANAGER),
        ("scheduler.kubeconfig", certs::SCHEDULER),
    ] {
        files.push(kubeconfig_file(layout, authority, endpoints, name, user)?);
    }
    Ok(files)
}

/// The certificates, kubeconfigs and configuration of a node.
pub(in crate::kubernetes) fn node_files(
    layout: &Layout,
    authority: &Authority,
    endpoints: &Endpoints,
    plugins: &Path,
    release: Release,
) -> Result<Vec<ConfigFile>> {
    let mut files = vec![
        file("containerd.toml", containerd(layout, plugins)),
        file("cni/10-bridge.conflist", cni(layout)),
        file("kubelet.yaml", kubelet(layout, release)),
        file("kube-proxy.yaml", proxy(layout)),
    ];
    files.extend(pair("kubelet", authority.kubelet(endpoints.address)?));
    files.extend(pair("kubelet-client", authority.client(certs::KUBELET_CLIENT)?));
    for (name, user) in [("kubelet.kubeconfig", certs::KUBELET), ("kube-proxy.kubeconfig", certs::PROXY)] {
        files.push(kubeconfig_file(layout, authority, endpoints, name, user)?);
    }
    Ok(files)
}

fn kubeconfig_file(
    layout: &Layout,
    authority: &Authority,
    endpoints: &Endpoints,
    name: &str,
    user: User,
) -> Result<ConfigFile> {
    let context = format!("windlass-testbed-{}", layout.name);
    let credentials = authority.client(user)?;
    let text = kubeconfig::render(
        &context,
        &endpoints.server(),
        &authority.pair.certificate,
        user.name,
        &credentials,
    );
    Ok(file(name, text))
}

/// containerd with runc. `restrict_oom_score_adj`, because runc may not lower a score below its own;
/// no AppArmor, because a profile would stay in the host's kernel.
fn containerd(layout: &Layout, plugins: &Path) -> String {
    format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd"

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{opt}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{conf}"
"#,
        root = path(layout, "containerd"),
        opt = path(layout, "opt"),
        plugins = plugins.display(),
        conf = path(layout, "cni"),
    )
}

fn cni(layout: &Layout) -> String {
    let config = serde_json::json!({
        "cniVersion": "0.4.0",
        "name": "windlass",
        "plugins": [
            {
                "type": "bridge",
                "bridge": BRIDGE,
                "isGateway": true,
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": path(layout, "ipam"),
                    "ranges": [[{"subnet": PODS.to_string()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    });
    format!("{config:#}\n")
}

/// The kubelet. Eviction and image collection are off: the machine's disk is not the testbed's business, and an
/// image that was collected could not be pulled again.
fn kubelet(layout: &Layout, release: Release) -> String {
    // A word that the older one does not know: it runs on such a host without a word.
    let cgroups = if release == Release::Newest { "failCgroupV1: false\n" } else { "" };
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: false}}
  x509: {{clientCAFile: {authority}}}
authorization: {{mode: AlwaysAllow}}
tlsCertFile: {certificate}
tlsPrivateKeyFile: {key}
containerRuntimeEndpoint: unix://{CONTAINERD_SOCKET}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
{cgroups}failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {{memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}}
imageGCHighThresholdPercent: 100
healthzPort: 0
resolvConf: \"\"
podLogsDir: {logs}
volumePluginDir: {volumes}
",
        authority = path(layout, "pki/ca.crt"),
        certificate = path(layout, "pki/kubelet.crt"),
        key = path(layout, "pki/kubelet.key"),
        logs = path(layout, "pods"),
        volumes = path(layout, "volume-plugins"),
    )
}

/// kube-proxy. Everything is masqueraded, so that a pod reaches its own node's pods through a Service even where
/// the kernel does not filter bridged packets; the box may not change the host's connection limits.
fn proxy(layout: &Layout) -> String {
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
mode: iptables
iptables: {{masqueradeAll: true}}
clusterCIDR: {PODS}
hostnameOverride: {NODE_NAME}
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
",
        kubeconfig = path(layout, "kube-proxy.kubeconfig"),
    )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);

    fn node() -> Vec<ConfigFile> {
        let layout = Layout { name: "a".to_owned(), run: "/r/a".into() };
        let endpoints = Endpoints { address: ADDRESS, api: 6443, etcd_client: 2379, etcd_peer: 2380 };
        let authority = Authority::new().unwrap();
        let mut files = control_plane_files(&layout, &authority, &endpoints).unwrap();
        files.extend(
            node_files(&layout, &authority, &endpoints, Path::new("/usr/lib/cni"), Release::Newest).unwrap(),
        );
        files
    }

    #[test]
    fn every_file_that_a_command_line_names_is_written() {
        let files = node();
        let layout = Layout { name: "a".to_owned(), run: "/r/a".into() };
        let endpoints = Endpoints { address: ADDRESS, api: 6443, etcd_client: 2379, etcd_peer: 2380 };
        let mut components = super::super::control_plane(&layout, Path::new("/bin"), &endpoints, true);
        components.extend(super::super::node(&layout, Path::new("/bin"), ADDRESS));
        for arg in components.iter().flat_map(|component| &component.args) {
            let Some(named) = arg.split_once("=/r/a/").map(|(_, path)| path) else { continue };
            // These are directories that the component makes itself.
            if ["etcd", "kubelet", "kubelet/pki"].contains(&named) {
                continue;
            }
            assert!(files.iter().any(|file| file.path == named), "{arg} names a file that nobody writes");
        }
    }

    #[test]
    fn the_cni_configuration_is_json_with_the_pod_range() {
        let files = node();
        let text = &files.iter().find(|file| file.path.ends_with("conflist")).unwrap().content;
        let config: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(config["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.88.0.0/16");
    }
}
