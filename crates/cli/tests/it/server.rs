//! `windlass cluster up` with kube-apiserver's flags: tokens, the audit log, Secrets on the disk.

use std::{fs, path::Path};

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::core::v1::{ConfigMap, Secret},
    kube::{
        Api, Client, Config,
        api::{ListParams, PostParams},
        config::{KubeConfigOptions, Kubeconfig},
    },
};

use crate::{command::windlass, dev::Running};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A client of the kubeconfig, or of somebody who has a token.
async fn client(kubeconfig: &Path, token: Option<&str>) -> Client {
    let mut read = Kubeconfig::read_from(kubeconfig).unwrap();
    if let Some(token) = token {
        for user in &mut read.auth_infos {
            let user = user.auth_info.as_mut().unwrap();
            (user.client_certificate_data, user.client_key_data) = (None, None);
            user.token = Some(token.to_owned().into());
        }
    }
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn has(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return has(&path, text);
        }
        fs::read(path).unwrap_or_default().windows(text.len()).any(|part| part == text.as_bytes())
    })
}

const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, users: [ann]}]}";

fn encryption(name: &str) -> String {
    format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{{resources: [secrets], \
         providers: [{{aesgcm: {{keys: [{{name: {name}, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}}]}}}}]}}]}}"
    )
}

#[tokio::test]
async fn tokens_are_known_requests_are_written_down_and_secrets_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("tokens.csv"), "ann-token,ann,7,\"shop\"\n").unwrap();
    fs::write(place("policy.yaml"), POLICY).unwrap();
    fs::write(place("encryption.yaml"), encryption("one")).unwrap();
    let arguments = [
        "cluster",
        "up",
        "--no-page",
        "--data-dir",
        "data",
        "--kubeconfig",
        "kubeconfig",
        "--token-auth-file",
        "tokens.csv",
        "--audit-policy-file",
        "policy.yaml",
        "--audit-log-path",
        "audit.log",
        "--encryption-provider-config",
        "encryption.yaml",
    ];
    let mut cluster = Running::start(folder.path(), &arguments);
    cluster.wait_for("kubectl get nodes");
    let ann = client(&place("kubeconfig"), Some("ann-token")).await;
    let refused = Api::<ConfigMap>::default_namespaced(ann).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("User \"ann\" cannot list resource"), "{refused}");
    let nobody = client(&place("kubeconfig"), Some("other-token")).await;
    let refused =
        Api::<ConfigMap>::default_namespaced(nobody).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("Unauthorized"), "{refused}");
    let log = fs::read_to_string(place("audit.log")).unwrap();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stages: Vec<&Value> = events.iter().map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    assert_eq!(
        events[1]["user"],
        json!({"username": "ann", "uid": "7", "groups": ["shop", "system:authenticated"]})
    );
    assert_eq!(events[1]["responseStatus"]["code"], 403);
    assert_eq!(events[1]["sourceIPs"], json!(["127.0.0.1"]));

    let admin = client(&place("kubeconfig"), None).await;
    let secret: Secret = serde_json::from_value(
        json!({"metadata": {"name": "hidden"}, "stringData": {"k": "v"}, "type": "Opaque",
            "data": {"other": "V0lORExBU1MtSElEREVO"}}),
    )
    .unwrap();
    Api::<Secret>::default_namespaced(admin).create(&PostParams::default(), &secret).await.unwrap();
    assert!(!has(&place("data"), "V0lORExBU1MtSElEREVO"));
    cluster.kill();
    // Without its key, or with another one, nothing starts; the other flags are read first.
    fs::write(place("encryption.yaml"), encryption("two")).unwrap();
    for (change, why) in [
        (None, "has secrets default/hidden, which cannot be read: it is encrypted (aesgcm:v1:one)"),
        (Some(("tokens.csv", "ann-token\n")), "line 1 is no token,user,uid"),
        (Some(("policy.yaml", "kind: Policy\n")), "failed to use policy.yaml"),
        (Some(("encryption.yaml", "kind: HUSH\n")), "failed to use encryption.yaml"),
    ] {
        if let Some((file, content)) = change {
            fs::write(place(file), content).unwrap();
        }
        let output = windlass().args(arguments).current_dir(folder.path()).output().unwrap();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(why) && !told.contains("HUSH"), "{told}");
        if let Some((file, _)) = change {
            fs::write(
                place(file),
                match file {
                    "tokens.csv" => "ann-token,ann,7\n".to_owned(),
                    "policy.yaml" => POLICY.to_owned(),
                    _ => encryption("one"),
                },
            )
            .unwrap();
        }
    }
    let mut cluster = Running::start(folder.path(), &arguments);
    cluster.wait_for("kubectl get nodes");
    let admin = client(&place("kubeconfig"), None).await;
    let secret = Api::<Secret>::default_namespaced(admin).get("hidden").await.unwrap();
    assert_eq!(secret.data.unwrap()["k"].0, b"v");
    cluster.kill();
}
