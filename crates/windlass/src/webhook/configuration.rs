//! The objects through which the API server learns of webhooks, for manifests and for the running operator.

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, ValidatingWebhook,
        ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::{Value, json};

use super::{FailurePolicy, Mode, Webhook, Webhooks, router::CONVERT};

/// How the API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Through a Service, on its port 443.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The Service.
        name: String,
    },
    /// Directly, at `https://host:port`: for an operator that runs outside the cluster.
    Url(String),
}

impl Reach {
    /// The names that the serving certificate must have.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => {
                ["", ".cluster.local"].map(|domain| format!("{name}.{namespace}.svc{domain}")).to_vec()
            }
            Self::Url(url) => host(url).map(ToOwned::to_owned).into_iter().collect(),
        }
    }

    fn client_config(&self, path: &str, trusted: Option<&str>) -> WebhookClientConfig {
        let ca_bundle = trusted.map(|pem| ByteString(pem.as_bytes().to_vec()));
        match self {
            Self::Service { namespace, name } => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    name: name.clone(),
                    namespace: namespace.clone(),
                    path: Some(path.to_owned()),
                    port: Some(443),
                }),
                url: None,
            },
            Self::Url(url) => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("{}{path}", url.trim_end_matches('/'))),
            },
        }
    }

    /// The `spec.conversion` of a CRD. Fields of the other way to reach it are taken away.
    pub(crate) fn conversion(&self, trusted: Option<&str>) -> Value {
        let mut config = serde_json::to_value(self.client_config(CONVERT, trusted))
            .expect("a client configuration must serialise");
        if let Self::Url(_) = self {
            config["service"] = Value::Null;
        }
        json!({
            "strategy": "Webhook",
            "webhook": { "clientConfig": config, "conversionReviewVersions": ["v1"] },
        })
    }
}

/// The host of `https://host:port/path`, without the brackets of an IPv6 address.
pub(crate) fn host(url: &str) -> Option<&str> {
    let authority = url.strip_prefix("https://")?.split('/').next()?;
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map(|(host, _)| host);
    }
    Some(authority.rsplit_once(':').map_or(authority, |(host, _)| host)).filter(|host| !host.is_empty())
}

impl Webhooks {
    fn of(&self, mode: Mode) -> impl Iterator<Item = &Webhook> {
        self.admission.iter().filter(move |webhook| webhook.mode == mode)
    }

    /// The configuration of all validating webhooks; `None` if there are none.
    pub(crate) fn validating(
        &self,
        name: &str,
        reach: &Reach,
        trusted: Option<&str>,
    ) -> Option<ValidatingWebhookConfiguration> {
        let entry = |webhook: &Webhook| ValidatingWebhook {
            admission_review_versions: vec!["v1".into()],
            client_config: reach.client_config(&webhook.path(), trusted),
            failure_policy: Some(webhook.failure_policy_name().into()),
            name: webhook.name(),
            namespace_selector: webhook.namespaces.clone(),
            object_selector: webhook.objects.clone(),
            match_conditions: webhook.match_conditions(),
            rules: Some(webhook.rules()),
            side_effects: "None".into(),
            timeout_seconds: i32::try_from(webhook.timeout.as_secs()).ok(),
            ..ValidatingWebhook::default()
        };
        let webhooks: Vec<_> = self.of(Mode::Validating).map(entry).collect();
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        (!webhooks.is_empty())
            .then_some(ValidatingWebhookConfiguration { metadata, webhooks: Some(webhooks) })
    }

    /// The configuration of all defaulting webhooks; `None` if there are none.
    pub(crate) fn mutating(
        &self,
        name: &str,
        reach: &Reach,
        trusted: Option<&str>,
    ) -> Option<MutatingWebhookConfiguration> {
        let entry = |webhook: &Webhook| MutatingWebhook {
            admission_review_versions: vec!["v1".into()],
            client_config: reach.client_config(&webhook.path(), trusted),
            failure_policy: Some(webhook.failure_policy_name().into()),
            name: webhook.name(),
            namespace_selector: webhook.namespaces.clone(),
            object_selector: webhook.objects.clone(),
            match_conditions: webhook.match_conditions(),
            rules: Some(webhook.rules()),
            side_effects: "None".into(),
            timeout_seconds: i32::try_from(webhook.timeout.as_secs()).ok(),
            ..MutatingWebhook::default()
        };
        let webhooks: Vec<_> = self.of(Mode::Defaulting).map(entry).collect();
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        (!webhooks.is_empty()).then_some(MutatingWebhookConfiguration { metadata, webhooks: Some(webhooks) })
    }
}

impl Webhook {
    fn failure_policy_name(&self) -> &'static str {
        match self.failure_policy {
            FailurePolicy::Fail => "Fail",
            FailurePolicy::Ignore => "Ignore",
        }
    }

    fn match_conditions(&self) -> Option<Vec<MatchCondition>> {
        (!self.conditions.is_empty()).then(|| self.conditions.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_for_the_host_of_the_url() {
        for (url, expected) in [
            ("https://127.0.0.1:9443", Some("127.0.0.1")),
            ("https://[::1]:9443/x", Some("::1")),
            ("https://laptop.local", Some("laptop.local")),
            ("http://127.0.0.1:9443", None),
            ("https://:9443", None),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
