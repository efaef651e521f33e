//! The storage class that every cluster has.

use windlass::{
    k8s_openapi::{api::storage::v1::StorageClass, apimachinery::pkg::apis::meta::v1::ObjectMeta},
    kube::{Api, Client, Error, api::PostParams},
};

/// Who makes the volumes of the class.
pub(super) const PROVISIONER: &str = "windlass.dev/simulated";

/// The driver of these volumes. The name of a driver has no slash: a real API server refuses the volume.
pub(super) const DRIVER: &str = "simulated.windlass.dev";

const NAME: &str = "standard";
const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// Whether claims that name no class get this one.
pub(super) fn is_default(class: &StorageClass) -> bool {
    super::annotation(&class.metadata, DEFAULT) == Some("true")
}

/// Creates the class unless it is there.
pub(crate) async fn create(client: &Client) -> Result<(), Error> {
    let class = StorageClass {
        metadata: ObjectMeta {
            name: Some(NAME.into()),
            annotations: Some([(DEFAULT.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.into(),
        reclaim_policy: Some("Delete".into()),
        volume_binding_mode: Some("WaitForFirstConsumer".into()),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    };
    match Api::all(client.clone()).create(&PostParams::default(), &class).await {
        Err(Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::DRIVER;

    #[test]
    fn a_driver_has_the_name_of_a_domain() {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'.' || byte == b'-';
        assert!(DRIVER.len() <= 63 && DRIVER.bytes().all(allowed), "{DRIVER}");
    }
}
