//! Label selectors of cached reads, beside those of the server.

use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass::{
    Action, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        ResourceExt,
        api::{ListParams, PostParams},
    },
};

use crate::{
    fixture::{Cluster, eventually},
    gadget::Gadget,
};

/// The names that a selector finds, or nothing if it is refused.
type Names = Option<Vec<String>>;

/// Lists by every selector that it is given.
#[derive(Clone)]
struct Listers {
    selectors: Arc<Vec<String>>,
    /// What each selector finds.
    found: Arc<Mutex<Option<Vec<Names>>>>,
}

impl Reconciler for Listers {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let namespace = gadget.namespace();
        let list = |selector: &String| {
            let maps = ctx.list_where::<ConfigMap>(namespace.as_deref(), selector).ok()?;
            Some(maps.iter().map(|map| map.name_any()).collect())
        };
        *self.found.lock().unwrap() = Some(self.selectors.iter().map(list).collect());
        Ok(Action::await_change())
    }
}

/// Terms of all kinds, right and wrong, alone and in pairs.
fn selectors() -> Vec<String> {
    let terms = [
        "",
        "app",
        "!app",
        "app=web",
        "app==web",
        "app!=web",
        "app in (web, db)",
        "app in ()",
        "app in (,web)",
        "app notin (web)",
        "level>3",
        "level<3",
        "level>x",
        "level=",
        "app =  web",
        "in=x",
        "app in web",
        "app=web=db",
        "!app=web",
        "app in (web",
        "-app",
        "app=-",
        "example.com/x",
        "example.com/x=1",
        "a/b/c",
        "app,",
        ",",
        "app web",
        "app=\u{e9}",
        "notin",
        "app in (notin)",
        "APP",
        "Example.com/x",
    ];
    let pairs = terms.iter().flat_map(|a| terms.iter().map(move |b| format!("{a},{b}")));
    terms.iter().map(ToString::to_string).chain(pairs).collect()
}

pub async fn a_cached_list_selects_as_the_server_does(cluster: Cluster) {
    let maps = cluster.api::<ConfigMap>();
    let labels = [
        json!(null),
        json!({"app": "web"}),
        json!({"app": "db", "level": "5"}),
        json!({"app": "", "level": "2"}),
        json!({"level": "high", "example.com/x": "1"}),
        json!({"in": "x", "app": "notin"}),
    ];
    for (number, labels) in labels.iter().enumerate() {
        let map = json!({"metadata": {"name": format!("map-{number}"), "labels": labels}});
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
    let listers = Listers { selectors: Arc::new(selectors()), found: Arc::default() };
    let controller = Controller::new(listers.clone()).reads::<ConfigMap>().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("listers").controller(controller));
    cluster.api::<Gadget>().create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    eventually("a run", || async { listers.found.lock().unwrap().is_some() }).await;
    let found = listers.found.lock().unwrap().clone().unwrap();
    let mut differences = Vec::new();
    for (selector, found) in listers.selectors.iter().zip(found) {
        let expected = maps.list(&ListParams::default().labels(selector)).await;
        let expected = expected.ok().map(|list| list.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
        // The embedded server accepts a little more than Kubernetes does; a real one is agreed with in everything.
        if found != expected && (cluster.is_real() || found.is_some()) {
            differences.push(format!("{selector:?}: {found:?} instead of {expected:?}"));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    running.stop().await;
}
