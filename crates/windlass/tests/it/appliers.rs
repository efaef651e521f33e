//! An operator to test with that applies whatever it is told to.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use windlass::{Action, Children, Context, Controller, Kind, Reconciler, Watch, kube::core::DynamicObject};

use crate::gadget::Gadget;

/// What is to be applied, and what became of it.
#[derive(Debug, Default)]
pub struct Slot {
    pub intent: Option<(Kind, Value)>,
    /// How many requests the last run needed for its children, or why it failed.
    pub outcome: Option<Result<usize, String>>,
}

#[derive(Clone, Default)]
pub struct Appliers {
    pub slot: Arc<Mutex<Slot>>,
}

impl Appliers {
    pub fn controller(&self, kinds: impl IntoIterator<Item = Kind>) -> Controller<Self> {
        let controller = Controller::new(self.clone());
        kinds.into_iter().fold(controller, |controller, kind| controller.owns_with(Watch::dynamic(kind)))
    }

    pub fn set(&self, kind: &Kind, intent: &Value) {
        let intent = Some((kind.clone(), intent.clone()));
        *self.slot.lock().unwrap() = Slot { intent, outcome: None };
    }

    /// Has nothing applied.
    pub fn clear(&self) {
        *self.slot.lock().unwrap() = Slot::default();
    }

    pub fn outcome(&self) -> Option<Result<usize, String>> {
        self.slot.lock().unwrap().outcome.clone()
    }
}

impl Reconciler for Appliers {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, _: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let Some((kind, intent)) = self.slot.lock().unwrap().intent.clone() else {
            return Ok(Action::await_change());
        };
        let child: DynamicObject = serde_json::from_value(intent.clone()).unwrap();
        let applied = ctx.apply(Children::new().with_dynamic(&kind, child).without_pruning()).await;
        let mut slot = self.slot.lock().unwrap();
        // A run that began before the intent was set says nothing of it.
        if slot.intent == Some((kind, intent)) {
            slot.outcome = Some(match applied {
                Ok(applied) => Ok(applied.written()),
                Err(error) => Err(format!("{error:?}")),
            });
        }
        Ok(Action::await_change())
    }
}
