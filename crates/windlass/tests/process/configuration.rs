//! Bad configuration: one clear line, a hint where one helps, and an exit code.

use std::{net::TcpListener, path::Path, time::Duration};

use serde_json::json;
use windlass::{
    k8s_openapi::{
        api::{
            core::v1::{ConfigMap, Namespace},
            rbac::v1::ClusterRole,
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{Api, Client, Config, CustomResourceExt, api::PostParams, config::KubeConfigOptions},
};

use crate::{child::Operator, operator::Parcel, setting};

/// Runs to the end, which must be a failure of one line, or two with a hint.
fn fails(kubeconfig: &Path, args: &[&str], code: i32, expected: &[&str]) {
    let (status, output) = Operator::run(kubeconfig, args);
    assert_eq!(status.code(), Some(code), "{args:?}:\n{output}");
    for text in expected {
        assert!(output.contains(text), "{text:?} is missing for {args:?}:\n{output}");
    }
    assert!(!output.contains("panicked"), "{output}");
    let errors = output.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "one clear line for {args:?}:\n{output}");
}

/// A kubeconfig that leads nowhere.
fn nowhere(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("nowhere");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
        clusters: [{name: x, cluster: {server: \"https://127.0.0.1:1\"}}]\n\
        contexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {token: t}}]\n";
    std::fs::write(&path, text).unwrap();
    path
}

/// Whoever started it holds the other end of stdin, and is gone here from the beginning.
pub fn orphan() {
    let directory = setting::directory("orphan");
    let arguments = ["--health-probe-bind-address=0", "--enable-webhooks=false"];
    let variables = [("WINDLASS_STOP_AT_STDIN_END", "true")];
    let mut operator = Operator::start_with(&nowhere(&directory), "one", &arguments, &variables);
    let status = operator.ended(Duration::from_mins(1));
    assert!(status.success(), "{}", operator.output());
    assert!(operator.output().contains("stdin has ended, shutting down"), "{}", operator.output());
    std::fs::remove_dir_all(directory).unwrap();
}

pub fn mistakes() {
    let directory = setting::directory("mistakes");
    let (absent, nowhere) = (directory.join("absent"), nowhere(&directory));
    fails(&absent, &["--metrics-bind-adress=:1"], 2, &["--metrics-bind-adress", "--metrics-bind-address"]);
    fails(&absent, &["--metrics-bind-address=8080"], 2, &["write host:port, :port, or 0 for none"]);
    fails(&absent, &["--watch-namespaces=a,B"], 2, &["\"B\" is no namespace", "separated by commas"]);
    fails(&absent, &["--log-level=a=b=c"], 1, &["failed to read --log-level", "hint: write error, warn"]);
    fails(&absent, &[], 1, &["failed to find a cluster", "hint: set KUBECONFIG"]);
    fails(
        &nowhere,
        &["install"],
        1,
        &["failed to reach the API server at https://127.0.0.1:1", "hint: is the cluster up"],
    );
    let config = directory.join("config.yaml");
    let path = config.to_str().unwrap();
    let with = |text: &str, expected: &[&str]| {
        std::fs::write(&config, text).unwrap();
        fails(&absent, &["--config", path], 1, expected);
    };
    with("leader-elekt: true\n", &["unknown key \"leader-elekt\"", "hint: did you mean \"leader-elect\"?"]);
    with("watch-namespaces: [Upper]\n", &["the value of watch-namespaces does not fit", "is no namespace"]);
    with("webhook-port: many\n", &["failed to read", "webhook-port"]);
    with(
        "controllers: {parsel: {concurrency: 2}}\n",
        &["no controller is named \"parsel\"", "hint: ", "parcel"],
    );
    with("{", &["failed to read"]);
    fails(&absent, &["--config", "/nonexistent.yaml"], 1, &["failed to read /nonexistent.yaml"]);
    std::fs::remove_dir_all(directory).unwrap();
}

/// The flags reach the controllers: one namespace is worked in, and a dry run says what it would do and does not.
pub fn flags() {
    setting::runtime().block_on(async {
        let (admin, directory) = (setting::embedded().await, setting::directory("flags"));
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_string(&admin).unwrap()).unwrap();
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let crds = Api::<CustomResourceDefinition>::all(client.clone());
        crds.create(&PostParams::default(), &Parcel::crd()).await.unwrap();
        let namespaces = Api::<Namespace>::all(client.clone());
        for name in ["shop", "attic"] {
            let body = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            namespaces.create(&PostParams::default(), &body).await.unwrap();
            let body = json!({"metadata": {"name": "one"}, "spec": {"grams": 1}});
            let parcel: Parcel = serde_json::from_value(body).unwrap();
            let parcels = Api::<Parcel>::namespaced(client.clone(), name);
            parcels.create(&PostParams::default(), &parcel).await.unwrap();
        }
        let labels = |name: &str| Api::<ConfigMap>::namespaced(client.clone(), name);
        let quiet = ["--health-probe-bind-address=0", "--enable-webhooks=false"];
        let rehearsal = Operator::start(&kubeconfig, "one", &[&quiet[..], &["--dry-run"]].concat());
        let line = rehearsal.line("would apply", Duration::from_secs(30));
        assert!(line.contains("\"worker\":\"one\"") && line.contains("key=attic/one"), "{line}");
        rehearsal.line("key=shop/one", Duration::from_secs(30));
        drop(rehearsal);
        assert!(labels("shop").get_opt("one").await.unwrap().is_none(), "nothing was written");

        let config = directory.join("config.yaml");
        std::fs::write(&config, "watch-namespaces: [shop]\n").unwrap();
        let args = [&quiet[..], &["--config", config.to_str().unwrap()]].concat();
        let operator = Operator::start(&kubeconfig, "two", &args);
        setting::eventually("the label is there", || async {
            labels("shop").get_opt("one").await.unwrap().is_some()
        })
        .await;
        drop(operator);
        assert!(
            labels("attic").get_opt("one").await.unwrap().is_none(),
            "the other namespace is not watched"
        );
        let operator =
            Operator::start(&kubeconfig, "two", &[&args[..], &["--watch-namespaces=attic"]].concat());
        setting::eventually("the flag wins over the file", || async {
            labels("attic").get_opt("one").await.unwrap().is_some()
        })
        .await;
        drop(operator);
        let elsewhere = ["--leader-elect", "--leader-election-namespace=nowhere"];
        fails(
            &kubeconfig,
            &[&quiet[..], &elsewhere].concat(),
            1,
            &["failed to acquire the lease nowhere/parcel-operator", "hint: does the namespace exist?"],
        );
        std::fs::remove_dir_all(directory).unwrap();
    });
}

/// What is uninstalled is the operator; its kinds and their objects go only when that is said.
pub fn installation() {
    setting::runtime().block_on(async {
        let (admin, directory) = (setting::embedded().await, setting::directory("installation"));
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_string(&admin).unwrap()).unwrap();
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let crds = Api::<CustomResourceDefinition>::all(Client::try_from(config.clone()).unwrap());
        let roles = Api::<ClusterRole>::all(Client::try_from(config).unwrap());
        let there = async || {
            let crd = crds.get_opt("parcels.process.windlass.dev").await.unwrap().is_some();
            (crd, roles.get_opt("parcel-operator-manager-role").await.unwrap().is_some())
        };
        let path = kubeconfig.to_str().unwrap();
        let run = |args: &[&str]| {
            // By the flag alone: the environment leads nowhere.
            let args = [args, &["--kubeconfig", path]].concat();
            let (status, output) = Operator::run(&directory.join("absent"), &args);
            assert!(status.success(), "{args:?}: {output}");
        };
        run(&["install"]);
        assert_eq!(there().await, (true, false), "without an image only the kinds");
        run(&["install", "--image=parcel-operator:1"]);
        assert_eq!(there().await, (true, true));
        run(&["uninstall"]);
        assert_eq!(there().await, (true, false), "the kinds stay");
        run(&["uninstall", "--crds"]);
        assert_eq!(there().await, (false, false));
        std::fs::remove_dir_all(directory).unwrap();
    });
}

pub fn refusals() {
    let runtime = setting::runtime();
    let directory = setting::directory("refusals");
    let kubeconfig = directory.join("kubeconfig");
    let admin = runtime.block_on(setting::embedded());
    std::fs::write(&kubeconfig, serde_json::to_string(&admin).unwrap()).unwrap();
    let quiet = ["--health-probe-bind-address=0", "--enable-webhooks=false"];
    let path = kubeconfig.to_str().unwrap();
    let elsewhere = directory.join("elsewhere");
    fails(
        &elsewhere,
        &["--kubeconfig", "/nonexistent"],
        1,
        &["failed to read the kubeconfig", "/nonexistent"],
    );
    fails(
        &elsewhere,
        &["--kubeconfig", path, "--context", "moon"],
        1,
        &["failed to read the kubeconfig", "moon", "hint: see --kubeconfig and --context"],
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for (flag, probes) in [("--metrics-bind-address", quiet[0]), ("--health-probe-bind-address", "")] {
        let taken = format!("{flag}={address}");
        let args: Vec<&str> =
            [taken.as_str(), probes, quiet[1]].into_iter().filter(|arg| !arg.is_empty()).collect();
        fails(&kubeconfig, &args, 1, &[&format!("failed to listen on {address}"), "hint: choose another"]);
    }
    let port = format!("--webhook-port={}", address.port());
    let args = [quiet[0], "--webhook-host=127.0.0.1", &port];
    fails(
        &kubeconfig,
        &args,
        1,
        &[&format!("failed to listen on {address} for webhooks"), "hint: choose another"],
    );
    let args = [quiet[0], "--webhook-port=0", "--webhook-cert-path=/nonexistent"];
    fails(&kubeconfig, &args, 1, &["failed to load the certificate of the webhooks", "/nonexistent/tls.crt"]);
    let args = [&quiet[..], &["--leader-elect", "--leader-elect-lease-duration=5s"]].concat();
    fails(
        &kubeconfig,
        &args,
        1,
        &["the lease duration (5s) must be longer than the renew deadline (10s)", "hint: see --leader-elect"],
    );
    // A user without any permission.
    let stranger = std::fs::read_to_string(&kubeconfig).unwrap();
    let mut stranger: serde_json::Value = serde_json::from_str(&stranger).unwrap();
    stranger["users"][0]["user"]["as"] = "stranger".into();
    let path = directory.join("stranger");
    std::fs::write(&path, stranger.to_string()).unwrap();
    fails(
        &path,
        &quiet,
        1,
        &["failed to fill the cache of", "forbidden", "hint: grant what the `rbac` command prints"],
    );
    std::fs::remove_dir_all(directory).unwrap();
}
