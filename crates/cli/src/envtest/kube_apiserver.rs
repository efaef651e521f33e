//! The API server under the name and with the flags of kube-apiserver.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use fs_err as fs;
use tokio::net::TcpStream;
use windlass_cluster::{Access, Cluster, Serving};

use super::{
    Error, assets,
    certificates::Pair,
    flags::{Flag, Given, help, switch, value},
    until_the_end, warn,
};
use crate::server::{self, ServerArgs};

/// How long etcd may take to come up.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What is printed for `--version`.
const VERSION: &str = "Kubernetes v1.37.1";

/// The flags that do something, and those that are taken because nothing would differ.
const FLAGS: &[Flag] = &[
    value("secure-port", "The port; 6443 unless given"),
    value("bind-address", "The address; 127.0.0.1 unless given"),
    value("cert-dir", "The folder of apiserver.crt and apiserver.key, which are made if they are not there"),
    value("tls-cert-file", "The server's certificate, in place of the one in --cert-dir"),
    value("tls-private-key-file", "Its private key"),
    value("client-ca-file", "The authorities of client certificates"),
    value("token-auth-file", "Tokens and whose they are: token,user,uid,\"group,group\""),
    value("audit-policy-file", "Which requests are written down, and how much of them"),
    value("audit-log-path", "Where; - is the standard output"),
    value("audit-log-maxsize", "How many megabytes a file of the audit log may have; 100 unless given"),
    value("audit-log-maxbackup", "How many older files are kept; all unless given"),
    value("audit-log-maxage", "How many days they are kept; for ever unless given"),
    value("oidc-issuer-url", "The issuer of OpenID Connect whose tokens are taken"),
    value("oidc-client-id", "For whom these tokens must be made"),
    value("oidc-ca-file", "Who has signed the issuer's certificate"),
    value("oidc-username-claim", "The claim that is the user's name; sub unless given"),
    value("oidc-username-prefix", "What stands before it; - is nothing"),
    value("oidc-groups-claim", "The claim that has the groups"),
    value("oidc-groups-prefix", "What stands before a group"),
    value("oidc-required-claim", "A claim that tokens must have, as CLAIM=VALUE"),
    value("oidc-signing-algs", "How tokens may be signed; RS256 unless given"),
    value("encryption-provider-config", "Read and checked: everything is in memory here"),
    value("authorization-mode", "AlwaysAllow lets everybody do everything; whatever else is named is RBAC"),
    value("disable-admission-plugins", "Built-in admission plug-ins that do not run"),
    value("etcd-servers", "etcd, which must answer; it keeps nothing"),
    value("enable-admission-plugins", "Taken: those of Kubernetes' default run"),
    value("service-cluster-ip-range", "Taken: Services have addresses of 10.96.0.0/16"),
    value("service-account-issuer", "Taken: tokens are signed and read by this process"),
    value("service-account-key-file", "Taken, like the issuer"),
    value("service-account-signing-key-file", "Taken, like the issuer"),
    value("api-audiences", "Taken, like the issuer"),
    value("advertise-address", "Taken"),
    value("feature-gates", "Taken: features are those that Kubernetes has on by default"),
    value("runtime-config", "Taken: versions are those that Kubernetes serves by default"),
    value("storage-backend", "Taken"),
    value("storage-media-type", "Taken"),
    value("etcd-prefix", "Taken"),
    value("external-hostname", "Taken"),
    value("max-requests-inflight", "Taken"),
    value("max-mutating-requests-inflight", "Taken"),
    value("min-request-timeout", "Taken"),
    value("request-timeout", "Taken"),
    value("vmodule", "Taken"),
    value("v", "Taken"),
    switch("allow-privileged", "Taken: privileged containers are"),
    switch("anonymous-auth", "Taken: anonymous requests are, and may do what RBAC lets them"),
    switch("enable-aggregator-routing", "Taken"),
    switch("enable-priority-and-fairness", "Taken"),
    switch("profiling", "Taken"),
    switch("logtostderr", "Taken"),
    switch("alsologtostderr", "Taken"),
];

/// The plug-ins of admission that can be turned off.
const PLUGINS: [&str; 7] = [
    "ServiceAccount",
    "LimitRanger",
    "Priority",
    "RuntimeClass",
    "PodSecurity",
    "DefaultStorageClass",
    "DefaultIngressClass",
];

/// What the flags ask for.
#[derive(Debug)]
struct Options {
    address: SocketAddr,
    files: Files,
    client_ca: Option<PathBuf>,
    server: ServerArgs,
    always_allow: bool,
    disabled_plugins: Vec<String>,
    etcd: Option<String>,
}

/// Where the server's certificate is.
#[derive(Debug, PartialEq, Eq)]
enum Files {
    Named(PathBuf, PathBuf),
    Folder(PathBuf),
    Nowhere,
}

pub(super) fn run(program: &Path, arguments: impl IntoIterator<Item = String>) -> Result<ExitCode, Error> {
    let given = Given::parse(FLAGS, arguments);
    if given.help || given.version {
        let text = if given.help { help("kube-apiserver", FLAGS) } else { format!("{VERSION}\n") };
        anstream::print!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    for name in &given.unknown {
        warn(format_args!("the flag --{name} is not known here, and has no effect"));
    }
    let options = Options::read(&given)?;
    until_the_end(serve(options, assets::has_controllers(program)))
}

impl Options {
    fn read(given: &Given) -> Result<Self, Error> {
        let number = |flag: &'static str, usual: u16| match given.last(flag) {
            None => Ok(usual),
            Some(text) => text.parse().map_err(|_| wrong(flag, text, "write a port")),
        };
        let ip = match given.last("bind-address") {
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(text) => text.parse().map_err(|_| wrong("bind-address", text, "write an IP address"))?,
        };
        let path = |flag: &str| given.last(flag).map(PathBuf::from);
        let files = match (path("tls-cert-file"), path("tls-private-key-file"), path("cert-dir")) {
            (Some(certificate), Some(key), _) => Files::Named(certificate, key),
            (Some(_), None, _) => return Err(wrong("tls-private-key-file", "", "--tls-cert-file needs it")),
            (_, _, Some(folder)) => Files::Folder(folder),
            _ => Files::Nowhere,
        };
        let modes = given.list("authorization-mode");
        let disabled_plugins = given.list("disable-admission-plugins");
        for plugin in disabled_plugins.iter().filter(|name| !PLUGINS.contains(&name.as_str())) {
            warn(format_args!("the admission plug-in {plugin} cannot be turned off here"));
        }
        Ok(Self {
            address: SocketAddr::new(ip, number("secure-port", 6443)?),
            files,
            client_ca: path("client-ca-file"),
            server: server_flags(given)?,
            always_allow: modes.iter().any(|mode| mode == "AlwaysAllow"),
            disabled_plugins,
            etcd: given.list("etcd-servers").into_iter().next(),
        })
    }
}

/// The flags that `windlass cluster up` has too.
fn server_flags(given: &Given) -> Result<ServerArgs, Error> {
    let path = |flag: &str| given.last(flag).map(PathBuf::from);
    let text = |flag: &str| given.last(flag).map(str::to_owned);
    let number = |flag: &'static str| match given.last(flag) {
        None => Ok(0),
        Some(text) => text.parse().map_err(|_| wrong(flag, text, "write a number")),
    };
    Ok(ServerArgs {
        token_auth_file: path("token-auth-file"),
        audit_policy_file: path("audit-policy-file"),
        audit_log_path: path("audit-log-path"),
        audit_log_maxsize: number("audit-log-maxsize")?,
        audit_log_maxbackup: usize::try_from(number("audit-log-maxbackup")?).unwrap_or(usize::MAX),
        audit_log_maxage: number("audit-log-maxage")?,
        oidc_issuer_url: text("oidc-issuer-url"),
        oidc_client_id: text("oidc-client-id"),
        oidc_ca_file: path("oidc-ca-file"),
        oidc_username_claim: text("oidc-username-claim"),
        oidc_username_prefix: text("oidc-username-prefix"),
        oidc_groups_claim: text("oidc-groups-claim"),
        oidc_groups_prefix: text("oidc-groups-prefix"),
        oidc_required_claim: given.list("oidc-required-claim"),
        oidc_signing_algs: given.list("oidc-signing-algs"),
        encryption_provider_config: path("encryption-provider-config"),
    })
}

fn wrong(flag: &'static str, value: &str, why: &str) -> Error {
    Error::Flag { flag, value: value.to_owned(), why: why.to_owned() }
}

async fn serve(options: Options, controllers: bool) -> Result<(), Error> {
    if let Some(etcd) = &options.etcd {
        reach(etcd).await?;
    }
    let pair = match &options.files {
        Files::Named(certificate, key) => Pair::read(certificate, key)?,
        Files::Folder(folder) => Pair::of_folder(folder, options.address.ip())?,
        Files::Nowhere => Pair::make(options.address.ip())?,
    };
    let read = |path: &PathBuf| {
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.clone(), source })
    };
    let clients = options.client_ca.as_ref().map(read).transpose()?;
    let access = Access {
        always_allow: options.always_allow,
        disabled_plugins: options.disabled_plugins,
        ..server::access(&options.server)?
    };
    let failed = |error| Error::Start(Box::new(error));
    let builder = Cluster::builder().seed(assets::entropy()).access(access);
    let builder = if controllers { builder } else { builder.without_controllers() };
    let mut cluster = builder.start().await.map_err(failed)?;
    let serving =
        Serving { certificates: &pair.certificates, key: &pair.key, client_authorities: clients.as_deref() };
    cluster.listen_with(options.address, serving).await.map_err(failed)?;
    Err(failed(cluster.failed().await))
}

/// Waits until etcd takes connections, as kube-apiserver does before it serves.
async fn reach(url: &str) -> Result<(), Error> {
    let address = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/').to_owned();
    let begin = Instant::now();
    while TcpStream::connect(&address).await.is_err() {
        if begin.elapsed() > TIMEOUT {
            return Err(Error::NoEtcd { address, limit: TIMEOUT });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, Error> {
        Options::read(&Given::parse(FLAGS, line.split(' ').map(str::to_owned)))
    }

    #[test]
    fn what_envtest_gives_is_understood() {
        let line = "--allow-privileged=true --authorization-mode=RBAC --bind-address=127.0.0.1 --cert-dir=/tmp/x \
                    --client-ca-file=/tmp/x/client-cert-auth-ca.crt --disable-admission-plugins=ServiceAccount \
                    --etcd-servers=http://127.0.0.1:40001 --secure-port=40002 \
                    --service-account-issuer=https://127.0.0.1:40002/ --service-account-key-file=/tmp/x/sa-signer.crt \
                    --service-account-signing-key-file=/tmp/x/sa-signer.key --service-cluster-ip-range=10.0.0.0/24";
        let line: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let given = Given::parse(FLAGS, line);
        assert_eq!(given.unknown, [""; 0]);
        let options = Options::read(&given).unwrap();
        assert_eq!(options.address, "127.0.0.1:40002".parse().unwrap());
        assert_eq!(options.files, Files::Folder("/tmp/x".into()));
        assert_eq!(options.client_ca, Some("/tmp/x/client-cert-auth-ca.crt".into()));
        assert_eq!(options.disabled_plugins, ["ServiceAccount"]);
        assert_eq!(options.etcd.as_deref(), Some("http://127.0.0.1:40001"));
        assert!(!options.always_allow);
    }

    #[test]
    fn without_an_address_only_this_machine_is_served() {
        assert!(options("--secure-port 1").unwrap().address.ip().is_loopback());
        assert_eq!(options("--bind-address 0.0.0.0").unwrap().address, "0.0.0.0:6443".parse().unwrap());
        assert!(options("--authorization-mode AlwaysAllow").unwrap().always_allow);
        for wrong in ["--secure-port many", "--bind-address here", "--tls-cert-file a"] {
            assert!(options(wrong).unwrap_err().to_string().contains("--"), "{wrong}");
        }
    }
}
