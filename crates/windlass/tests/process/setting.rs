//! Where a process operator runs: a cluster, a namespace of its own, and an account with the generated rules only.

use std::{
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use windlass::{
    Placement,
    k8s_openapi::{
        api::{
            authentication::v1::TokenRequest,
            core::v1::{Namespace, ServiceAccount},
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        Api, Client, Config,
        api::{DeleteParams, Patch, PatchParams, PostParams},
        config::{KubeConfigOptions, Kubeconfig},
        core::{ApiResource, DynamicObject, GroupVersionKind},
        runtime::wait::{await_condition, conditions as until},
    },
};
use windlass_apiserver::{
    ApiServer, authority::Authority, environment, listener, registry::Registry, store::Store,
};

use crate::operator;

pub struct Setting {
    pub admin: Client,
    pub namespace: String,
    /// A kubeconfig of the operator's own account.
    pub kubeconfig: PathBuf,
    /// The address of this machine that the API server can reach.
    pub address: IpAddr,
    pub port: u16,
    directory: PathBuf,
}

pub fn free_port(address: IpAddr) -> u16 {
    TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port()
}

pub fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("windlass-process-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The address by which the other side of a connection to this host sees us.
fn own_address(host: &str, port: u16) -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((host, port)).unwrap();
    socket.local_addr().unwrap().ip()
}

impl Setting {
    /// A setting on the cluster of a kubeconfig.
    pub async fn new(name: &str, admin: Kubeconfig) -> Self {
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(admin.clone(), &options).await.unwrap();
        let (host, port) = (config.cluster_url.host().unwrap().to_owned(), config.cluster_url.port_u16());
        let address = own_address(&host, port.unwrap_or(443));
        let setting = Self {
            admin: Client::try_from(config).unwrap(),
            namespace: format!("windlass-{name}-{}", std::process::id()),
            kubeconfig: PathBuf::new(),
            address,
            port: free_port(address),
            directory: directory(name),
        };
        setting.install(admin).await
    }

    /// Applies what the operator itself prints, adjusted as a user would whose operator runs on this machine.
    async fn install(mut self, admin: Kubeconfig) -> Self {
        let placement = Placement::new(&self.namespace, "unused");
        for mut manifest in operator::operator().manifests(&placement) {
            match manifest["kind"].as_str().unwrap() {
                // It runs as a process of this test; nobody looks for its metrics.
                "Deployment" => continue,
                "Service" if manifest["metadata"]["name"] == format!("{}-metrics", operator::NAME) => {
                    continue;
                }
                "Service" => {
                    manifest["spec"] =
                        json!({"type": "ExternalName", "externalName": self.address.to_string()});
                }
                _ => self.change_port(&mut manifest),
            }
            self.apply(&manifest).await;
        }
        let crds = Api::<CustomResourceDefinition>::all(self.admin.clone());
        let established = await_condition(crds, "parcels.process.windlass.dev", until::is_crd_established());
        tokio::time::timeout(Duration::from_secs(10), established).await.unwrap().unwrap();
        let token = self.token().await;
        self.kubeconfig = self.write_kubeconfig(admin, &token, "operator", None);
        self
    }

    /// A Service that only is another name has no ports to translate.
    fn change_port(&self, manifest: &mut Value) {
        let webhooks = manifest.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            webhook["clientConfig"]["service"]["port"] = self.port.into();
        }
        if let Some(service) = manifest.pointer_mut("/spec/conversion/webhook/clientConfig/service") {
            service["port"] = self.port.into();
        }
    }

    async fn apply(&self, manifest: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let api_version = text(&manifest["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let gvk = GroupVersionKind::gvk(group, version, &text(&manifest["kind"]));
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> = match manifest["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            None => Api::all_with(self.admin.clone(), &resource),
        };
        let params = PatchParams::apply("process-test").force();
        let applied = api.patch(&text(&manifest["metadata"]["name"]), &params, &Patch::Apply(manifest)).await;
        applied.unwrap_or_else(|error| panic!("{error}: {manifest:#}"));
    }

    async fn token(&self) -> String {
        let accounts = Api::<ServiceAccount>::namespaced(self.admin.clone(), &self.namespace);
        let request: TokenRequest =
            serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 3600}})).unwrap();
        let answer = accounts.create_token_request(operator::NAME, &PostParams::default(), &request).await;
        answer.unwrap().status.unwrap().token.unwrap()
    }

    /// A kubeconfig of the operator's account, through another address if one is given.
    fn write_kubeconfig(&self, admin: Kubeconfig, token: &str, name: &str, server: Option<&str>) -> PathBuf {
        let mut config = serde_json::to_value(admin).unwrap();
        for user in config["users"].as_array_mut().unwrap() {
            user["user"] = json!({ "token": token });
        }
        for context in config["contexts"].as_array_mut().unwrap() {
            context["context"]["namespace"] = self.namespace.clone().into();
        }
        if let Some(server) = server {
            for cluster in config["clusters"].as_array_mut().unwrap() {
                let old = cluster["cluster"]["server"].as_str().unwrap().to_owned();
                let host = old.trim_start_matches("https://").rsplit_once(':').unwrap().0.to_owned();
                cluster["cluster"]["tls-server-name"] = host.into();
                cluster["cluster"]["server"] = server.into();
            }
        }
        let path = self.directory.join(format!("{name}.kubeconfig"));
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// The same account through a proxy at this address.
    pub async fn through(&self, admin: Kubeconfig, name: &str, proxy: std::net::SocketAddr) -> PathBuf {
        let token = self.token().await;
        self.write_kubeconfig(admin, &token, name, Some(&format!("https://{proxy}")))
    }

    /// Takes the webhooks away again: the kind is stored and served as it is.
    pub async fn unhook(&self) {
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
            let api: Api<DynamicObject> = Api::all_with(self.admin.clone(), &ApiResource::from_gvk(&gvk));
            api.delete(operator::NAME, &DeleteParams::default()).await.unwrap();
        }
    }

    /// Leaves the cluster as it is: it ends with the test.
    pub fn abandon(self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }

    /// Removes everything that was installed.
    pub async fn remove(self) {
        let placement = Placement::new(&self.namespace, "unused");
        for manifest in operator::operator().manifests(&placement).iter().rev() {
            let kind = manifest["kind"].as_str().unwrap();
            let name = manifest["metadata"]["name"].as_str().unwrap();
            let cluster_wide = ["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"];
            if !cluster_wide.contains(&kind) && !kind.ends_with("WebhookConfiguration") {
                continue;
            }
            let api_version = manifest["apiVersion"].as_str().unwrap();
            let (group, version) = api_version.split_once('/').unwrap();
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api: Api<DynamicObject> = Api::all_with(self.admin.clone(), &resource);
            let _ = api.delete(name, &DeleteParams::default()).await;
        }
        let crds = Api::<CustomResourceDefinition>::all(self.admin.clone());
        eventually("the CRD is gone", || async {
            crds.get_opt("parcels.process.windlass.dev").await.unwrap().is_none()
        })
        .await;
        let namespaces = Api::<Namespace>::all(self.admin.clone());
        let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    for _ in 0..1200 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never happened: {what}");
}

/// The CRD and the roles are one for all tests of a real cluster, so these take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The kubeconfig of the real cluster.
pub fn real() -> Kubeconfig {
    Kubeconfig::read().expect("KUBECONFIG must name a cluster")
}

/// An API server in this process, on a socket, that ends with the runtime.
pub async fn embedded() -> Kubeconfig {
    let away = Away::new("127.0.0.1:0".parse().unwrap());
    away.begin().await
}

/// An API server that is not there yet.
pub struct Away {
    address: SocketAddr,
    authority: Authority,
}

impl Away {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, authority: Authority::new(windlass::jiff::Timestamp::now()).unwrap() }
    }

    /// What leads to it once it is there.
    pub fn kubeconfig(&self, url: &str) -> Kubeconfig {
        let admin = self.authority.client("admin", &["system:masters"]).unwrap();
        Kubeconfig::from_yaml(&listener::kubeconfig(url, &self.authority, "admin", &admin)).unwrap()
    }

    /// Begins to serve.
    pub async fn begin(self) -> Kubeconfig {
        let clock = environment::TokioClock::starting_at(windlass::jiff::Timestamp::now());
        let environment = environment::Environment::new(clock, 7);
        let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
        let socket = listener::Listener::bind(self.address, &self.authority).await.unwrap();
        let kubeconfig = self.kubeconfig(&socket.url());
        tokio::spawn(socket.serve(ApiServer::new(Arc::new(registry)), std::future::pending()));
        kubeconfig
    }
}

/// The status that a probe answers with, and what it says.
pub async fn probe(port: u16, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}
