//! The API server itself dies and comes back, on a testbed of this test's own.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;
use windlass::{
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        Api,
        api::{DeleteParams, PostParams},
        config::Kubeconfig,
    },
};

use crate::{
    child::Operator,
    election::dealt_with,
    operator::Parcel,
    setting::{self, Setting, eventually},
};

/// An API server that nobody else uses. Ends with this value.
struct Testbed {
    name: String,
    xtask: PathBuf,
    kubeconfig: PathBuf,
}

impl Testbed {
    fn start() -> Self {
        let xtask = std::env::var_os("WINDLASS_XTASK")
            .expect("this test starts a testbed: run it with `cargo xtask kubernetes test`");
        let name = format!("death-{}", std::process::id());
        let kubeconfig = std::env::temp_dir().join(format!("windlass-{name}.kubeconfig"));
        let testbed = Self { name, xtask: xtask.into(), kubeconfig };
        let path = testbed.kubeconfig.to_str().unwrap();
        assert!(testbed.command(&["up", "--api-server", "--kubeconfig", path]).status().unwrap().success());
        testbed
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.xtask);
        command.arg("kubernetes").args(args).args(["--name", &self.name]).stdin(Stdio::null());
        command
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let _ = self.command(&["down"]).status();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

pub fn real() {
    let testbed = Testbed::start();
    setting::runtime().block_on(async {
        let admin = Kubeconfig::read_from(&testbed.kubeconfig).unwrap();
        let setting = Setting::new("death", admin).await;
        setting.unhook().await;
        let port = setting::free_port("127.0.0.1".parse().unwrap());
        let probes = format!("--health-probe-bind-address=127.0.0.1:{port}");
        let mut operator = Operator::start(
            &setting.kubeconfig,
            "one",
            &["--leader-elect", "--enable-webhooks=false", &probes],
        );
        for name in ["kept", "robbed"] {
            dealt_with(&setting, name, "one").await;
        }
        assert_eq!(setting::probe(port, "/readyz").await.0, 200);

        let mut restart = testbed.command(&["restart"]).spawn().unwrap();
        let mut unready = None;
        let status = loop {
            let (status, page) = setting::probe(port, "/readyz").await;
            unready = unready.or_else(|| (status == 503).then_some(page));
            if let Some(status) = restart.try_wait().unwrap() {
                break status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert!(status.success());
        let page = unready.expect("while the API server is away, the operator is not ready");
        assert!(page.contains("[-]") && page.contains("Parcel"), "which watch fails is told: {page}");

        // What happens before the watches are back must not be lost.
        let labels = Api::<ConfigMap>::namespaced(setting.admin.clone(), &setting.namespace);
        let parcels = Api::<Parcel>::namespaced(setting.admin.clone(), &setting.namespace);
        labels.delete("robbed", &DeleteParams::default()).await.unwrap();
        parcels.delete("kept", &DeleteParams::default()).await.unwrap();
        let body = json!({"metadata": {"name": "new"}, "spec": {"grams": 1}});
        parcels.create(&PostParams::default(), &serde_json::from_value(body).unwrap()).await.unwrap();
        for name in ["robbed", "new"] {
            let back = || async { labels.get_opt(name).await.unwrap().is_some() };
            eventually(&format!("the label of {name} is there"), back).await;
        }
        eventually("the operator is ready again", || async {
            setting::probe(port, "/readyz").await.0 == 200
        })
        .await;
        dealt_with(&setting, "later", "one").await;
        operator.terminate();
        assert!(operator.ended(Duration::from_secs(20)).success(), "{}", operator.output());
        setting.abandon();
    });
}
