//! The operator under test: a Parcel has a label ConfigMap, rules, defaults, and an older version.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Children, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{CustomResource, ResourceExt},
    webhook::{
        Conversion, ConversionError, Defaulter, Request, Spoke, Validator, Verdict, Webhook, keep, kept,
    },
};

pub const NAME: &str = "parcel-operator";

/// The hub.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "process.windlass.dev", version = "v2", kind = "Parcel", namespaced)]
pub struct ParcelSpec {
    pub grams: Option<i64>,
    #[serde(default)]
    pub destination: String,
}

pub mod v1 {
    use super::{ConversionError, CustomResource, Deserialize, JsonSchema, Serialize, Spoke, keep, kept};

    /// The older version: weight as text in kilograms, and a stamp that the hub has no field for.
    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "process.windlass.dev", version = "v1", kind = "Parcel", namespaced)]
    pub struct ParcelSpec {
        pub kilograms: String,
        pub stamp: Option<String>,
    }

    impl Spoke for Parcel {
        type Hub = super::Parcel;

        fn into_hub(self) -> Result<super::Parcel, ConversionError> {
            let kilograms: i64 = self.spec.kilograms.parse().map_err(ConversionError::new)?;
            let spec = super::ParcelSpec { grams: Some(kilograms * 1000), destination: String::new() };
            let mut hub = super::Parcel { metadata: self.metadata, spec };
            if let Some(stamp) = self.spec.stamp {
                keep(&mut hub, "v1", &stamp)?;
            }
            Ok(hub)
        }

        fn from_hub(mut hub: super::Parcel) -> Result<Self, ConversionError> {
            let stamp = kept(&mut hub, "v1")?;
            let kilograms = (hub.spec.grams.unwrap_or(0) / 1000).to_string();
            Ok(Self { metadata: hub.metadata, spec: ParcelSpec { kilograms, stamp } })
        }
    }
}

struct Rules;

impl Validator for Rules {
    type Resource = Parcel;

    async fn validate_create(&self, parcel: &Parcel, _: &Request) -> Verdict {
        let mut verdict = Verdict::allow();
        match parcel.spec.grams {
            Some(grams) if grams <= 0 => {
                verdict.invalid("spec.grams", grams, "must be positive");
            }
            Some(grams) if grams > 30_000 => {
                verdict.warn("heavy parcels are slow");
            }
            _ => {}
        }
        verdict
    }

    async fn validate_delete(&self, parcel: &Parcel, _: &Request) -> Verdict {
        match parcel.labels().get("registered") {
            Some(_) => Verdict::deny("registered parcels stay"),
            None => Verdict::allow(),
        }
    }
}

impl Defaulter for Rules {
    type Resource = Parcel;

    async fn default(&self, parcel: &mut Parcel, _: &Request) -> Verdict {
        parcel.spec.grams.get_or_insert(500);
        Verdict::allow()
    }
}

struct Parcels;

impl Reconciler for Parcels {
    type Resource = Parcel;
    type Error = windlass::Error;

    async fn reconcile(&self, parcel: Arc<Parcel>, ctx: &Context<Parcel>) -> windlass::Result<Action> {
        let mut label = ConfigMap::default();
        label.metadata.name = Some(parcel.name_any());
        let worker = std::env::var("WORKER").unwrap_or_default();
        label.data = Some([("worker".to_owned(), worker)].into());
        ctx.apply(Children::new().with(label)).await?;
        Ok(Action::await_change())
    }
}

/// The kinds alone, without the webhooks that convert them.
pub fn plain() -> Operator {
    Operator::new(NAME).crd::<Parcel>()
}

pub fn operator() -> Operator {
    Operator::new(NAME)
        .crd::<Parcel>()
        .crd::<v1::Parcel>()
        .controller(Controller::new(Parcels).owns::<ConfigMap>())
        .webhook(Webhook::validating(Rules).on_delete())
        .defaults(Rules)
        .converts(Conversion::hub::<Parcel>().spoke::<v1::Parcel>())
}
