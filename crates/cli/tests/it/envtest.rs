//! `windlass envtest`: this program in the place of etcd and kube-apiserver, started as envtest starts those.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use windlass::{
    k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Pod},
    },
    kube::{
        Api, Client, Config, ResourceExt,
        api::{DeleteParams, PostParams},
    },
};

use crate::command::windlass;

/// How long anything may take on a busy machine. Nothing waits longer than it must.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A process that ends with the value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The directory of the programs, and what they write.
struct Place {
    folder: tempfile::TempDir,
    assets: PathBuf,
}

impl Place {
    fn new(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let output =
            windlass().arg("envtest").arg("--dir").arg(folder.path().join("assets")).args(more).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let assets = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
        Self { folder, assets }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.assets.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Both programs, with the flags that controller-runtime gives, and a client that may do everything.
    async fn start(&self) -> (Process, Process, Client) {
        let (etcd_port, port) = (free_port(), free_port());
        let etcd = Command::new(self.program("etcd"))
            .arg(format!("--listen-client-urls=http://127.0.0.1:{etcd_port}"))
            .arg(format!("--advertise-client-urls=http://127.0.0.1:{etcd_port}"))
            .arg(format!("--data-dir={}", self.path("etcd").display()))
            .args(["--listen-peer-urls=http://localhost:0", "--unsafe-no-fsync=true"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let etcd = Process(etcd);
        std::fs::write(self.path("tokens.csv"), "secret,tester,1,\"system:masters\"\n").unwrap();
        let server = Command::new(self.program("kube-apiserver"))
            .arg(format!("--etcd-servers=http://127.0.0.1:{etcd_port}"))
            .arg(format!("--cert-dir={}", self.path("certs").display()))
            .arg(format!("--token-auth-file={}", self.path("tokens.csv").display()))
            .args(["--secure-port".to_owned(), port.to_string()])
            .args(["--bind-address=127.0.0.1", "--authorization-mode=RBAC", "--allow-privileged=true"])
            .args(["--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24"])
            .args(["--never-heard-of=x"])
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(self.path("stderr")).unwrap())
            .spawn()
            .unwrap();
        let server = Process(server);
        until("etcd is well", || {
            asked(etcd_port, "/health").is_some_and(|answer| answer.contains(r#""health":"true""#))
        })
        .await;
        let client = client(port, &self.path("certs/apiserver.crt")).await;
        (etcd, server, client)
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What is answered over plain HTTP.
fn asked(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !check() {
        assert!(begin.elapsed() < TIMEOUT, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A client that trusts what was left in the certificate directory, once the server is ready.
async fn client(port: u16, certificate: &Path) -> Client {
    let begin = Instant::now();
    loop {
        if let Ok(pem) = std::fs::read(certificate) {
            let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
            config.root_cert = Some(ders(&pem));
            config.auth_info.token = Some("secret".to_owned().into());
            let client = Client::try_from(config).unwrap();
            let ready = http::Request::get("/readyz").body(Vec::new()).unwrap();
            if client.request_text(ready).await.is_ok_and(|text| text == "ok") {
                return client;
            }
        }
        assert!(begin.elapsed() < TIMEOUT, "the API server never became ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The certificates of a PEM file.
fn ders(pem: &[u8]) -> Vec<Vec<u8>> {
    use base64::Engine as _;
    let text = std::str::from_utf8(pem).unwrap();
    let blocks = text.split("-----BEGIN CERTIFICATE-----").skip(1);
    blocks
        .map(|block| {
            let body: String = block.split("-----END").next().unwrap().split_whitespace().collect();
            base64::engine::general_purpose::STANDARD.decode(body).unwrap()
        })
        .collect()
}

fn deployment() -> Deployment {
    let labels = json!({"app": "web"});
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}},
        },
    }))
    .unwrap()
}

fn namespace(name: &str) -> Namespace {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_programs_do_what_a_bare_api_server_does() {
    let place = Place::new(&[]);
    let (mut etcd, mut server, client) = place.start().await;
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace("a")).await.unwrap();
    // Without the plug-in a Pod is stored as it was sent, also without an account.
    let pods = Api::<Pod>::namespaced(client.clone(), "a");
    let pod = json!({
        "metadata": {"name": "p"}, "spec": {"serviceAccountName": "nobody", "containers": [{"name": "c", "image": "i"}]},
    });
    let pod = pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    assert_eq!(pod.spec.unwrap().volumes, None);
    // Nobody works on anything.
    let deployments = Api::<Deployment>::namespaced(client.clone(), "a");
    deployments.create(&PostParams::default(), &deployment()).await.unwrap();
    namespaces.delete("a", &DeleteParams::default()).await.unwrap();
    let left = namespaces.get("a").await.unwrap();
    assert_eq!(left.status.unwrap().phase.as_deref(), Some("Terminating"));
    assert_eq!(deployments.get("web").await.unwrap().status.unwrap_or_default().replicas, None);

    let said = std::fs::read_to_string(place.path("stderr")).unwrap();
    assert!(said.contains("--never-heard-of is not known here"), "{said}");
    assert!(!said.contains("secure-port"), "{said}");
    assert!(place.path("certs/apiserver.key").is_file() && place.path("etcd").is_dir());
    for process in [&mut server, &mut etcd] {
        stop(&mut process.0);
    }
}

/// Asks a process to end as envtest does, and sees that it ends well.
#[cfg(unix)]
fn stop(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Windows has no such signal: envtest ends processes there.
#[cfg(windows)]
fn stop(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_controllers_deployments_become_ready_and_namespaces_go() {
    let place = Place::new(&["--controllers"]);
    let (_etcd, _server, client) = place.start().await;
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace("a")).await.unwrap();
    let deployments = Api::<Deployment>::namespaced(client.clone(), "a");
    let owner = deployments.create(&PostParams::default(), &deployment()).await.unwrap();
    eventually("the Deployment is ready", || async {
        deployments.get("web").await.unwrap().status.and_then(|status| status.ready_replicas) == Some(2)
    })
    .await;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "a");
    let child = json!({"metadata": {"name": "child", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner.uid().unwrap()},
    ]}});
    maps.create(&PostParams::default(), &serde_json::from_value(child).unwrap()).await.unwrap();
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("the child goes with its owner", || async { maps.get_opt("child").await.unwrap().is_none() })
        .await;
    namespaces.delete("a", &DeleteParams::default()).await.unwrap();
    eventually("the namespace goes", || async { namespaces.get_opt("a").await.unwrap().is_none() }).await;
}

async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let begin = Instant::now();
    while !check().await {
        assert!(begin.elapsed() < TIMEOUT, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// envtest asks a program for its help, and looks there for flags.
#[test]
fn the_help_says_what_envtest_looks_for() {
    let place = Place::new(&[]);
    let help = |name: &str| {
        let output = Command::new(place.program(name)).arg("--help").output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let has = |help: &str, flag: &str| help.lines().any(|line| line.trim_start().starts_with(flag));
    let server = help("kube-apiserver");
    assert!(has(&server, "--secure-port") && !has(&server, "--insecure-port"), "{server}");
    let etcd = help("etcd");
    assert!(has(&etcd, "--unsafe-no-fsync"), "{etcd}");
    let version = Command::new(place.program("kube-apiserver")).arg("--version").output().unwrap();
    assert!(String::from_utf8(version.stdout).unwrap().starts_with("Kubernetes v1."));
    let wrong = Command::new(place.program("kube-apiserver")).arg("--secure-port=many").output().unwrap();
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("--secure-port \"many\""));
}

// A process whose parent is gone has another one, which only Unix tells.
#[cfg(unix)]
#[tokio::test]
async fn a_process_goes_with_whoever_started_it_and_kubectl_is_the_users_own() {
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::{Pid, Signal, kill_process};
    /// What a failed test must not leave behind.
    struct Left(Pid);
    impl Drop for Left {
        fn drop(&mut self) {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }
    let place = Place::new(&[]);
    let port = free_port();
    let line = format!(
        "'{}' --listen-client-urls http://127.0.0.1:{port} >/dev/null 2>&1 & echo $!; read wait",
        place.program("etcd").display(),
    );
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut number = String::new();
    let mut stdout = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut number).unwrap();
    let _left = Left(Pid::from_raw(number.trim().parse().unwrap()).unwrap());
    until("etcd is well", || asked(port, "/health").is_some()).await;
    shell.kill().unwrap();
    shell.wait().unwrap();
    until("etcd has ended by itself", || asked(port, "/health").is_none()).await;

    // kubectl is what the PATH has, behind the directory itself.
    let own = place.path("kubectl");
    std::fs::write(&own, "#!/bin/sh\necho mine \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = |folders: &[&Path]| std::env::join_paths(folders).unwrap();
    let mut command = Command::new(place.program("kubectl"));
    let found = command
        .args(["get", "pods"])
        .env("PATH", path(&[&place.assets, place.folder.path()]))
        .output()
        .unwrap();
    assert_eq!((found.status.code(), found.stdout.as_slice()), (Some(7), b"mine get pods\n".as_slice()));
    let none = Command::new(place.program("kubectl")).env("PATH", path(&[&place.assets])).output().unwrap();
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(!none.status.success() && said.contains("hint: install kubectl"), "{said}");
}
