//! Operators to test with that know their kinds only when they run.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use windlass::{
    Action, Children, Context, Controller, Kind, Reconciler, Watch,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        ResourceExt,
        core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta},
    },
};

use crate::widget::Widget;

pub fn kind(group: &str, name: &str) -> Kind {
    Kind::dynamic(&ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", name)), true)
}

/// Gives every object of a kind a ConfigMap, and notes it in the status, knowing the type of neither.
#[derive(Clone)]
pub struct Copiers {
    pub runs: Arc<AtomicUsize>,
    pub map: Kind,
}

impl Copiers {
    pub fn controller(&self) -> Controller<Self> {
        Controller::dynamic(self.clone(), kind("it.windlass.dev", "Gadget"))
            .owns_with(Watch::dynamic(self.map.clone()).labels("copied=yes"))
    }
}

impl Reconciler for Copiers {
    type Resource = DynamicObject;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        object: Arc<DynamicObject>,
        ctx: &Context<DynamicObject>,
    ) -> windlass::Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let mut map = DynamicObject::new(&object.name_any(), &self.map.api_resource())
            .data(json!({"data": {"image": object.data["spec"]["image"]}}));
        map.labels_mut().insert("copied".into(), "yes".into());
        let applied = ctx.apply(Children::new().with_dynamic(&self.map, map)).await?;
        let live = applied.get_dynamic(&self.map, &object.name_any());
        let uid = live.and_then(|map| map.uid()).unwrap_or_default();
        assert_eq!(ctx.dynamic(&self.map).owned()?.len(), 1, "own writes are in the cache");
        let gadgets = kind("it.windlass.dev", "Gadget");
        let status = json!({
            "readyReplicas": uid.len(), "observedGeneration": object.metadata.generation, "conditions": []
        });
        ctx.dynamic(&gadgets).patch_status(&object, &status).await?;
        Ok(Action::await_change())
    }
}

/// Owns ConfigMaps by their metadata alone.
#[derive(Clone, Default)]
pub struct Labellers {
    pub runs: Arc<AtomicUsize>,
}

impl Labellers {
    pub fn controller(&self) -> Controller<Self> {
        Controller::new(self.clone()).owns::<PartialObjectMeta<ConfigMap>>()
    }
}

impl Reconciler for Labellers {
    type Resource = crate::gadget::Gadget;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        gadget: Arc<crate::gadget::Gadget>,
        ctx: &Context<crate::gadget::Gadget>,
    ) -> windlass::Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let mut map = ConfigMap::default();
        map.metadata.name = gadget.metadata.name.clone();
        map.data = Some([("image".to_owned(), gadget.spec.image.clone())].into());
        ctx.apply(Children::new().with(map)).await?;
        let mut status = gadget.status.clone().unwrap_or_default();
        status.observed_generation = gadget.metadata.generation;
        status.ready_replicas = ctx.owned::<PartialObjectMeta<ConfigMap>>()?.len() as i32;
        ctx.update_status(status).await?;
        Ok(Action::await_change())
    }
}

/// Watches the kind that a ConfigMap names, for as long as it names it.
#[derive(Clone, Default)]
pub struct Followers {
    /// How many widgets the last run has seen; `None` if it watches none.
    pub seen: Arc<Mutex<Option<usize>>>,
}

impl Reconciler for Followers {
    type Resource = ConfigMap;
    type Error = windlass::Error;

    async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> windlass::Result<Action> {
        if map.name_any() != "follow" {
            return Ok(Action::await_change());
        }
        let widgets = Kind::of::<Widget>();
        let wanted = map.data.as_ref().is_some_and(|data| data.contains_key("widgets"));
        let seen = if wanted {
            let key = ctx.key().clone();
            let watch = Watch::dynamic(widgets.clone()).optional();
            ctx.watches().watches(watch, move |_, _| vec![key.clone()]).await?;
            Some(ctx.dynamic(&widgets).list(None)?.len())
        } else {
            ctx.watches().remove(&widgets);
            assert!(ctx.dynamic(&widgets).list(None).is_err(), "it is not watched any more");
            None
        };
        *self.seen.lock().unwrap() = seen;
        Ok(Action::await_change())
    }
}
