//! Operators to test with that watch one kind in several scopes.

use std::sync::{Arc, Mutex};

use windlass::{
    Action, Children, Context, Controller, Reconciler, Watch,
    k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret},
    kube::{ResourceExt, core::PartialObjectMeta},
};

use crate::gadget::Gadget;

/// One declaration about Secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub verb: Verb,
    pub scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Owns,
    /// By the metadata alone.
    OwnsMetadata,
    Watches,
    Reads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    Label,
    OtherLabel,
    Name,
    OtherName,
    Type,
    OtherType,
}

impl Scope {
    pub const EVERY: [Self; 7] =
        [Self::All, Self::Label, Self::OtherLabel, Self::Name, Self::OtherName, Self::Type, Self::OtherType];

    /// Whether the Secret that [`Keepsakes`] makes is in it.
    pub fn has_child(self) -> bool {
        matches!(self, Self::All | Self::Label | Self::Name | Self::Type)
    }

    fn narrow<K: windlass::Object>(self) -> Watch<K> {
        let watch = Watch::new();
        match self {
            Self::All => watch,
            Self::Label => watch.labels("kept in (yes, surely),!lost"),
            Self::OtherLabel => watch.labels("kept=no"),
            Self::Name => watch.fields("metadata.name=one"),
            Self::OtherName => watch.fields("metadata.name=other"),
            Self::Type => watch.fields("type=Opaque"),
            Self::OtherType => watch.fields("type!=Opaque"),
        }
    }
}

/// What the last run has seen of its child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Whether `get` finds it, and how often `list` and `owned` have it.
    Applied {
        found: bool,
        listed: usize,
        owned: usize,
    },
    Failed(String),
}

/// Gives every Gadget a Secret.
#[derive(Clone, Default)]
pub struct Keepsakes {
    pub outcome: Arc<Mutex<Option<Outcome>>>,
}

impl Keepsakes {
    pub fn controller(&self, declarations: &[Declaration]) -> Controller<Self> {
        let mut controller = Controller::new(self.clone());
        for Declaration { verb, scope } in declarations {
            controller = match verb {
                Verb::Owns => controller.owns_with(scope.narrow::<Secret>()),
                Verb::OwnsMetadata => controller.owns_with(scope.narrow::<PartialObjectMeta<Secret>>()),
                Verb::Watches => controller.watches_with(scope.narrow::<Secret>(), |_, _| Vec::new()),
                Verb::Reads => controller.reads_with(scope.narrow::<Secret>()),
            };
        }
        controller
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome.lock().unwrap().clone()
    }
}

impl Reconciler for Keepsakes {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let mut secret = Secret::default();
        secret.metadata.name = Some(gadget.name_any());
        secret.metadata.labels = Some([("kept".to_owned(), "yes".to_owned())].into());
        let applied = ctx.apply(Children::new().with(secret)).await;
        let namespace = gadget.namespace();
        let outcome = match &applied {
            Err(error) => Outcome::Failed(error.to_string()),
            Ok(_) => Outcome::Applied {
                // Without a store of whole Secrets there is nothing to read.
                found: ctx
                    .get::<Secret>(namespace.as_deref(), &gadget.name_any())
                    .is_ok_and(|one| one.is_some()),
                listed: ctx
                    .list::<Secret>(namespace.as_deref())
                    .map_or(0, |list| list.iter().filter(|one| one.name_any() == gadget.name_any()).count()),
                owned: ctx.owned::<Secret>().map_or(0, |owned| owned.len()),
            },
        };
        *self.outcome.lock().unwrap() = Some(outcome);
        applied.map(|_| Action::await_change())
    }
}

/// Gives a Namespace a ConfigMap in another one.
#[derive(Clone)]
pub struct Outposts {
    pub target: String,
    pub outcome: Arc<Mutex<Option<Result<(), String>>>>,
}

impl Reconciler for Outposts {
    type Resource = Namespace;
    type Error = windlass::Error;

    async fn reconcile(&self, _: Arc<Namespace>, ctx: &Context<Namespace>) -> windlass::Result<Action> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("outpost".into());
        map.metadata.namespace = Some(self.target.clone());
        let applied = ctx.apply(Children::new().with(map)).await;
        let outcome = applied.as_ref().map(|_| ()).map_err(ToString::to_string);
        *self.outcome.lock().unwrap() = Some(outcome);
        applied.map(|_| Action::await_change())
    }
}
