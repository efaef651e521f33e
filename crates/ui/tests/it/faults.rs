//! Faults of the API for one account, what Kubernetes' own controllers do, and what happened before anybody looked.

use std::time::Duration;

use windlass::{
    k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, ServiceAccount},
    },
    kube::{
        self, Api,
        api::{DeleteParams, ListParams, PostParams},
    },
    serde_json::{self, Value, from_value, json},
};
use windlass_cluster::{Cluster, Fault, Identity};
use windlass_ui::{ApiFault, ApiFaults, Operators, Options, Page};

use crate::{World, browser::Browser};

#[tokio::test]
async fn the_api_is_broken_for_one_account_and_for_nobody_else() {
    let cluster = Cluster::start().await.unwrap();
    let (set, get) = (cluster.server().faults().clone(), cluster.server().faults().clone());
    let api_faults = ApiFaults::new(
        move |user, fault| {
            set.set(
                user,
                fault.map(|fault| match fault {
                    ApiFault::Slow => Fault::Slow(Duration::from_secs(1)),
                    ApiFault::Unavailable => Fault::Unavailable,
                }),
            );
        },
        move |user| get.of(user).map(|_| ApiFault::Unavailable),
    );
    let options = Options { edit: true, faults: true, api_faults: Some(api_faults), ..Options::default() };
    let page = Page::bind(0, cluster.client(), options).await.unwrap();
    let browser = Browser::new(&page.url());
    tokio::spawn(page.serve(std::future::pending()));
    let account: ServiceAccount = from_value(json!({"metadata": {"name": "operator"}})).unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "default");
    accounts.create(&PostParams::default(), &account).await.unwrap();

    let object = "version=v1&kind=ServiceAccount&plural=serviceaccounts&namespace=default&name=operator";
    let ask = async || {
        let client = cluster.client_as(Identity::service_account("default", "operator"));
        match Api::<ConfigMap>::namespaced(client, "default").list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) => status.code,
            answer => panic!("no rules let it list anything: {answer:?}"),
        }
    };
    assert_eq!(ask().await, 403);
    let press = async |fault: &str| browser.post(&format!("/fault?{object}&fault={fault}"), "").await.body;
    assert!(press("api-unavailable").await.contains("\"ok\":true"));
    assert_eq!(ask().await, 503);
    assert!(accounts.get("operator").await.is_ok(), "others go on");
    let shown = browser.get(&format!("/object?{object}")).await.body;
    assert!(shown.contains("data-fault=\"api-unavailable\" aria-pressed=\"true\""), "{shown}");
    assert!(press("").await.contains("\"ok\":true"));
    assert_eq!(ask().await, 403);
    assert!(press("explode").await.contains("cannot happen"));
}

#[tokio::test]
async fn what_happened_before_the_page_was_opened_is_told() {
    let world = World::start().await;
    let maps: Api<ConfigMap> = Api::namespaced(world.cluster.client(), "default");
    let map: ConfigMap = from_value(json!({"metadata": {"name": "early"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    maps.delete("early", &DeleteParams::default()).await.unwrap();
    let mut events = world.browser.events().await;
    events.whole().await;
    assert!(!events.text.contains("\"early\""), "it is gone, and nobody looked");
    let changes: Vec<Value> = serde_json::from_str(&world.browser.get("/earlier").await.body).unwrap();
    let of = |change: &&Value| change["row"]["n"] == "early";
    let verbs: Vec<&str> = changes.iter().filter(of).map(|change| change["verb"].as_str().unwrap()).collect();
    assert_eq!(verbs, ["created", "deleted"]);
    let revisions: Vec<u64> =
        changes.iter().map(|change| change["row"]["r"].as_str().unwrap().parse().unwrap()).collect();
    assert!(revisions.is_sorted(), "oldest first");
    let mut ids: Vec<u64> = changes.iter().map(|change| change["id"].as_u64().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), changes.len());
    assert!(ids.iter().all(|id| *id < 1 << 53), "a script can tell them apart");
}

#[tokio::test]
async fn the_runs_of_built_in_controllers_are_those_of_their_objects() {
    let operators = Operators::default();
    let world = World::with(Options { operators: operators.clone(), ..Options::default() }).await;
    operators.add_built_in(world.cluster.controllers());
    let mut events = world.browser.events().await;
    events.whole().await;
    let deployments: Api<Deployment> = Api::namespaced(world.cluster.client(), "default");
    // Runs are recorded from the first time that somebody asks for them.
    for number in 0.. {
        let web: Deployment = from_value(json!({
            "metadata": {"name": format!("web-{number}")},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        }))
        .unwrap();
        deployments.create(&PostParams::default(), &web).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let object = format!(
            "group=apps&version=v1&kind=Deployment&plural=deployments&namespace=default&name=web-{number}&part=runs"
        );
        let body = world.browser.get(&format!("/object?{object}")).await.body;
        if body.contains("data-run=") {
            break;
        }
        assert!(number < 60, "{body}");
    }
    events.until("a run", |text| text.contains("\"built_in\":true")).await;
}
