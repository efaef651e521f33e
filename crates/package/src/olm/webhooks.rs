//! Webhooks as a bundle describes them. OLM makes their Service, issues their certificate, mounts it and puts its
//! authority where the API server looks for it.

use serde_json::{Value, json};

use crate::{
    Objects,
    objects::{items, kind, name, text},
};

/// Where the API server reaches the webhooks, by OLM's own rule for the Service's name.
pub(super) const PORT: u16 = 443;

/// What OLM sets up, and whether there is a conversion among it.
pub(super) fn definitions(objects: &Objects, deployment: &Value) -> (Vec<Value>, bool) {
    let ports = items(&deployment["spec"]["template"]["spec"]["containers"][0]["ports"]);
    let target =
        ports.into_iter().find(|port| port["name"] == "webhook").map(|port| port["containerPort"].clone());
    let Some(target) = target else { return (Vec::new(), false) };
    let common = |definition: &mut Value| {
        definition["deploymentName"] = json!(name(deployment));
        definition["containerPort"] = json!(PORT);
        definition["targetPort"] = target.clone();
    };
    let mut definitions = Vec::new();
    for configuration in objects.all() {
        let sort = match kind(configuration) {
            "ValidatingWebhookConfiguration" => "ValidatingAdmissionWebhook",
            "MutatingWebhookConfiguration" => "MutatingAdmissionWebhook",
            _ => continue,
        };
        for webhook in items(&configuration["webhooks"]) {
            let mut definition = json!({
                "type": sort,
                "generateName": webhook["name"],
                "webhookPath": webhook["clientConfig"]["service"]["path"],
            });
            let fields = [
                "admissionReviewVersions",
                "failurePolicy",
                "matchPolicy",
                "objectSelector",
                "reinvocationPolicy",
                "rules",
                "sideEffects",
                "timeoutSeconds",
            ];
            for field in fields {
                if !webhook[field].is_null() {
                    definition[field] = webhook[field].clone();
                }
            }
            common(&mut definition);
            definitions.push(definition);
        }
    }
    let conversion = conversion(objects);
    let converts = conversion.is_some();
    if let Some(mut conversion) = conversion {
        common(&mut conversion);
        definitions.push(conversion);
    }
    (definitions, converts)
}

/// One webhook for all conversions: they share a path.
fn conversion(objects: &Objects) -> Option<Value> {
    let crds: Vec<&Value> =
        objects.crds().filter(|crd| text(crd, "/spec/conversion/strategy") == "Webhook").collect();
    let webhook = crds.first()?.pointer("/spec/conversion/webhook")?;
    let names: Vec<&str> = crds.iter().map(|crd| name(crd)).collect();
    Some(json!({
        "type": "ConversionWebhook",
        "generateName": format!("conversion.{}", objects.name()),
        "admissionReviewVersions": webhook["conversionReviewVersions"],
        "sideEffects": "None",
        "webhookPath": webhook["clientConfig"]["service"]["path"],
        "conversionCRDs": names,
    }))
}

/// The Service that OLM makes for the webhooks of a Deployment.
pub(super) fn service_name(deployment: &str) -> String {
    format!("{}-service", deployment.replace('.', "-"))
}
