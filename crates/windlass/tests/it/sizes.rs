//! A controller that only remembers the sizes of the Widgets that it was called for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use windlass::{Action, Context, Controller, ObjectKey, Reconciler, kube::ResourceExt};

use crate::widget::{Widget, WidgetSpec};

pub fn widget(name: &str, size: i32) -> Widget {
    Widget::new(name, WidgetSpec { size })
}

#[derive(Clone, Default)]
pub struct Sizes(Arc<Mutex<BTreeMap<String, i32>>>);

impl Sizes {
    pub fn controller(&self) -> Controller<Self> {
        Controller::new(self.clone())
    }

    pub fn get(&self, name: &str) -> Option<i32> {
        self.0.lock().unwrap().get(name).copied()
    }
}

impl Reconciler for Sizes {
    type Resource = Widget;
    type Error = windlass::Error;

    async fn reconcile(&self, widget: Arc<Widget>, _: &Context<Widget>) -> windlass::Result<Action> {
        self.0.lock().unwrap().insert(widget.name_any(), widget.spec.size);
        Ok(Action::await_change())
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<Widget>) -> windlass::Result<()> {
        self.0.lock().unwrap().remove(key.name());
        Ok(())
    }
}
