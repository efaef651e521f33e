//! What is in an operator's namespace beside the operator: with the namespace it would be lost.

use windlass::{
    k8s_openapi::api::{
        apps::v1::{DaemonSet, Deployment, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
    },
    kube::{
        Api, Client, ResourceExt,
        api::{DynamicObject, ListParams},
        core::ApiResource,
    },
};

use crate::{error::Error, history, target::Target};

/// The kinds that people lose something with.
fn kinds() -> [ApiResource; 10] {
    [
        ApiResource::erase::<PersistentVolumeClaim>(&()),
        ApiResource::erase::<Secret>(&()),
        ApiResource::erase::<ConfigMap>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<DaemonSet>(&()),
        ApiResource::erase::<CronJob>(&()),
        ApiResource::erase::<Job>(&()),
        ApiResource::erase::<Pod>(&()),
    ]
}

/// What somebody else has put into the namespace; objects of custom kinds are others' to name.
pub(crate) async fn of_others(
    client: &Client,
    namespace: &str,
    operator: &str,
) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for kind in kinds() {
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind);
        let list = api.list(&ListParams::default()).await.map_err(|error| Error::Request {
            verb: "list",
            what: format!("{} in the namespace {namespace}", kind.plural),
            source: error.into(),
        })?;
        let foreign = list.items.into_iter().filter(|object| is_foreign(object, operator));
        found.extend(foreign.map(|object| {
            let (name, namespace) = (object.name_any(), None);
            Target { resource: kind.clone(), namespace, name }.to_string()
        }));
    }
    Ok(found)
}

fn is_foreign(object: &DynamicObject, operator: &str) -> bool {
    let labels = object.metadata.labels.as_ref();
    let ours =
        labels.and_then(|labels| labels.get("app.kubernetes.io/name")).is_some_and(|name| name == operator);
    let name = object.name_any();
    let made = name == "kube-root-ca.crt"
        || name == format!("{operator}-webhook-certificates")
        || object.data["type"] == "kubernetes.io/service-account-token";
    let going = object.metadata.deletion_timestamp.is_some();
    !(ours || made || going || object.metadata.owner_references.is_some() || history::is_record(labels))
}
