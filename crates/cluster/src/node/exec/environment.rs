//! The variables of a container. Pure: a Pod, what it refers to and the Services beside it enter, variables leave.
//!
//! Left out is what the image decides, such as `PATH` and `HOME`.

use std::collections::BTreeMap;

use windlass::k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, Pod, ResourceFieldSelector, Service, ServicePort,
};
use windlass::{
    k8s_openapi::apimachinery::pkg::api::resource::Quantity, kube::ResourceExt, serde_json::json,
};

use super::world::Known;
use crate::quantity::thousandths;

/// Variables in the order in which they were first set.
pub(super) type Variables = Vec<(String, String)>;

/// The variables of a container.
pub(super) fn of(pod: &Pod, container: &Container, hostname: &str, known: &Known) -> Variables {
    let mut variables = vec![("HOSTNAME".to_owned(), hostname.to_owned())];
    for service in &known.services {
        for (name, value) in links(service) {
            set(&mut variables, name, value);
        }
    }
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let data = match (&source.config_map_ref, &source.secret_ref) {
            (Some(source), _) => known.config_map_text(&source.name),
            (_, Some(source)) => known.secret(&source.name),
            _ => continue,
        };
        for (key, value) in data {
            set(&mut variables, format!("{prefix}{key}"), String::from_utf8_lossy(&value).into_owned());
        }
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value(variable, &variables, pod, container, known) {
            set(&mut variables, variable.name.clone(), value);
        }
    }
    variables
}

fn set(variables: &mut Variables, name: String, value: String) {
    match variables.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => variables.push((name, value)),
    }
}

fn value(
    variable: &EnvVar,
    before: &Variables,
    pod: &Pod,
    container: &Container,
    known: &Known,
) -> Option<String> {
    match &variable.value_from {
        Some(source) => referred(source, pod, container, known),
        None => Some(expanded(variable.value.as_deref().unwrap_or_default(), before)),
    }
}

fn referred(source: &EnvVarSource, pod: &Pod, container: &Container, known: &Known) -> Option<String> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if let Some(field) = &source.field_ref {
        return self::field(pod, &field.field_path);
    }
    if let Some(selector) = &source.resource_field_ref {
        return amount(pod, container, selector, known);
    }
    if let Some(key) = &source.config_map_key_ref {
        return known.config_map_text(&key.name).remove(&key.key).map(text);
    }
    let key = source.secret_key_ref.as_ref()?;
    known.secret(&key.name).remove(&key.key).map(text)
}

/// `$(NAME)` is replaced where the name is known; `$$` is a dollar.
fn expanded(text: &str, known: &Variables) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        done.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            done.push('$');
            rest = escaped;
            continue;
        }
        let reference = after.strip_prefix('(').and_then(|inside| inside.split_once(')'));
        let value = reference.and_then(|(name, _)| known.iter().find(|(known, _)| known == name));
        match (reference, value) {
            (Some((_, behind)), Some((_, value))) => {
                done.push_str(value);
                rest = behind;
            }
            _ => {
                done.push('$');
                rest = after;
            }
        }
    }
    done + rest
}

/// A field of the Pod, as the downward API names it.
pub(super) fn field(pod: &Pod, path: &str) -> Option<String> {
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    let subscripted = |name: &str| path.strip_prefix(name)?.strip_prefix("['")?.strip_suffix("']");
    if let Some(key) = subscripted("metadata.labels") {
        return Some(pod.labels().get(key).cloned().unwrap_or_default());
    }
    if let Some(key) = subscripted("metadata.annotations") {
        return Some(pod.annotations().get(key).cloned().unwrap_or_default());
    }
    let joined = |ips: Vec<&str>| Some(ips.join(","));
    match path {
        "metadata.name" => Some(pod.name_any()),
        "metadata.namespace" => pod.namespace(),
        "metadata.uid" => pod.uid(),
        "metadata.labels" => Some(lines(pod.labels())),
        "metadata.annotations" => Some(lines(pod.annotations())),
        "spec.nodeName" => spec?.node_name.clone(),
        "spec.serviceAccountName" => spec?.service_account_name.clone(),
        "status.podIP" => status?.pod_ip.clone(),
        "status.hostIP" => status?.host_ip.clone(),
        "status.podIPs" => joined(status?.pod_ips.iter().flatten().map(|ip| &*ip.ip).collect()),
        "status.hostIPs" => joined(status?.host_ips.iter().flatten().map(|ip| &*ip.ip).collect()),
        _ => None,
    }
}

/// `key="value"`, one after the other.
fn lines(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={}", json!(value))).collect::<Vec<_>>().join("\n")
}

/// What a container asks for or may use, in units of the divisor, rounded up.
pub(super) fn amount(
    pod: &Pod,
    container: &Container,
    selector: &ResourceFieldSelector,
    known: &Known,
) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let named = selector.container_name.as_deref().filter(|name| !name.is_empty());
    let mut all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let container = named.map_or(Some(container), |name| all.find(|one| one.name == name))?;
    let (kind, resource) = selector.resource.split_once('.')?;
    let resources = container.resources.as_ref();
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get(resource));
    let nothing = Quantity("0".into());
    let amount = match kind {
        // Whoever has no limit may use what the node has.
        "limits" => limit.or_else(|| known.allocatable.get(resource)).unwrap_or(&nothing),
        "requests" => {
            let request = resources.and_then(|resources| resources.requests.as_ref()?.get(resource));
            request.or(limit).unwrap_or(&nothing)
        }
        _ => return None,
    };
    let divisor =
        selector.divisor.as_ref().and_then(thousandths).filter(|divisor| *divisor > 0).unwrap_or(1000);
    let amount = thousandths(amount)?;
    Some(((amount + divisor - 1) / divisor).to_string())
}

/// What a container is told about a Service.
fn links(service: &Service) -> Vec<(String, String)> {
    let upper = |text: &str| text.to_uppercase().replace('-', "_");
    let spec = service.spec.as_ref();
    let address = spec.and_then(|spec| spec.cluster_ip.as_deref()).filter(|ip| !matches!(*ip, "" | "None"));
    let ports: &[ServicePort] = spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let (Some(address), Some(first)) = (address, ports.first()) else { return Vec::new() };
    let name = upper(&service.name_any());
    let url = |port: &ServicePort| {
        let protocol = port.protocol.as_deref().unwrap_or("TCP").to_lowercase();
        format!("{protocol}://{address}:{}", port.port)
    };
    let mut links = vec![
        (format!("{name}_SERVICE_HOST"), address.to_owned()),
        (format!("{name}_SERVICE_PORT"), first.port.to_string()),
        (format!("{name}_PORT"), url(first)),
    ];
    for port in ports {
        if let Some(port_name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            links.push((format!("{name}_SERVICE_PORT_{}", upper(port_name)), port.port.to_string()));
        }
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let prefix = format!("{name}_PORT_{}_{protocol}", port.port);
        links.push((format!("{prefix}_PROTO"), protocol.to_lowercase()));
        links.push((format!("{prefix}_PORT"), port.port.to_string()));
        links.push((format!("{prefix}_ADDR"), address.to_owned()));
        links.push((prefix, url(port)));
    }
    links
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::from_value;

    use super::*;

    #[test]
    fn variables_are_those_that_a_kubelet_sets() {
        let pod: Pod = from_value(json!({
            "metadata": {"name": "one", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app",
                "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
                "envFrom": [{"prefix": "C_", "configMapRef": {"name": "conf"}}],
                "env": [
                    {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(NOPE)-$$(A)"},
                    {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "sec", "key": "password"}}},
                    {"name": "GONE", "valueFrom": {"secretKeyRef": {"name": "sec", "key": "gone", "optional": true}}},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
                    {"name": "C_b", "value": "own"}]}]},
            "status": {"podIP": "10.0.0.7"},
        }))
        .unwrap();
        let known = Known {
            config_maps: [(
                "conf".into(),
                from_value(json!({"data": {"a": "x", "b": "y"}, "binaryData": {"c": "AAE="}})).unwrap(),
            )]
            .into(),
            secrets: [("sec".into(), from_value(json!({"data": {"password": "czNjcmV0"}})).unwrap())].into(),
            ..Known::default()
        };
        let found = of(&pod, &pod.spec.as_ref().unwrap().containers[0], "one", &known);
        let lines: Vec<String> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            lines,
            [
                "HOSTNAME=one",
                "C_a=x",
                "C_b=own",
                "A=1",
                "B=1-$(NOPE)-$(A)",
                "APP=web",
                "IP=10.0.0.7",
                "PW=s3cret",
                "CPU=1",
                "MEM=64"
            ]
        );
    }

    #[test]
    fn services_are_told_as_they_have_always_been() {
        let service: Service = from_value(json!({
            "metadata": {"name": "kubernetes"},
            "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]},
        }))
        .unwrap();
        let mut found: Vec<String> =
            links(&service).iter().map(|(name, value)| format!("{name}={value}")).collect();
        found.sort();
        assert_eq!(
            found,
            [
                "KUBERNETES_PORT=tcp://10.96.0.1:443",
                "KUBERNETES_PORT_443_TCP=tcp://10.96.0.1:443",
                "KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1",
                "KUBERNETES_PORT_443_TCP_PORT=443",
                "KUBERNETES_PORT_443_TCP_PROTO=tcp",
                "KUBERNETES_SERVICE_HOST=10.96.0.1",
                "KUBERNETES_SERVICE_PORT=443",
                "KUBERNETES_SERVICE_PORT_HTTPS=443",
            ]
        );
    }
}
