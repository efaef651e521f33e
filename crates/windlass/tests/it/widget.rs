//! An operator to test kinds with that come and go: every Gadget gets a Widget if there are such things.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Children, Context, Controller, Reconciler, Watch,
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceDefinition, JSONSchemaProps,
    },
    kube::{CustomResource, CustomResourceExt, ResourceExt},
};

use crate::gadget::Gadget;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "it.windlass.dev", version = "v1", kind = "Widget", namespaced)]
pub struct WidgetSpec {
    pub size: i32,
}

impl Widget {
    /// A definition that lets more pass than the type can read: a size may be text.
    pub fn loose_crd() -> CustomResourceDefinition {
        let mut crd = Self::crd();
        let schema = crd.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        let spec = schema.properties.as_mut().unwrap().get_mut("spec").unwrap();
        let size = JSONSchemaProps { x_kubernetes_int_or_string: Some(true), ..JSONSchemaProps::default() };
        spec.properties.as_mut().unwrap().insert("size".into(), size);
        crd
    }
}

/// Gives every Gadget a Widget.
#[derive(Clone, Default)]
pub struct Fitters {
    pub runs: Arc<AtomicUsize>,
}

impl Fitters {
    pub fn controller(&self) -> Controller<Self> {
        Controller::new(self.clone()).owns_with(Watch::<Widget>::new().optional())
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Reconciler for Fitters {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let mut children = Children::new();
        if ctx.is_served::<Widget>()? {
            children.push(Widget::new(&gadget.name_any(), WidgetSpec { size: gadget.spec.replicas }));
        }
        ctx.apply(children).await?;
        let mut status = gadget.status.clone().unwrap_or_default();
        status.observed_generation = gadget.metadata.generation;
        // How many widgets the cache has.
        status.ready_replicas = i32::try_from(ctx.owned::<Widget>()?.len()).unwrap_or(i32::MAX);
        ctx.update_status(status).await?;
        Ok(Action::await_change())
    }
}
