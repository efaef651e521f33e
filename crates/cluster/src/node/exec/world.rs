//! What a container can see: the objects that a Pod refers to are read here, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
            core::v1::{
                ConfigMap, Container, Node, Pod, Secret, Service, ServiceAccount,
                ServiceAccountTokenProjection, VolumeProjection,
            },
        },
        apimachinery::pkg::api::resource::Quantity,
    },
    kube::{
        Api, Client, ResourceExt,
        api::{ListParams, PostParams},
    },
    serde_json,
};

use super::{
    environment::{self, Variables},
    files::{Files, Found, Tree},
    started,
};

/// What a program in a container sees.
#[derive(Debug)]
pub(super) struct World {
    pub(super) env: Variables,
    pub(super) files: Files,
    pub(super) hostname: String,
    /// The working directory, unless the image decides it.
    pub(super) directory: Option<String>,
    /// What could not be read, for the client to know.
    pub(super) notes: Vec<String>,
}

/// The objects that decide it.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) config_maps: BTreeMap<String, ConfigMap>,
    pub(super) secrets: BTreeMap<String, Secret>,
    pub(super) services: Vec<Service>,
    pub(super) allocatable: BTreeMap<String, Quantity>,
    pub(super) tokens: BTreeMap<(String, i64), String>,
}

impl World {
    /// The world of a container, if the Pod has it.
    pub(super) async fn gather(client: &Client, pod: &Pod, name: &str, node: Option<Node>) -> Option<Self> {
        let container = container(pod, name)?;
        let mut notes = Vec::new();
        let known = Known::gather(client, pod, &container, node, &mut notes).await;
        let hostname = hostname(pod);
        Some(Self {
            env: environment::of(pod, &container, &hostname, &known),
            files: Files::of(pod, &container, &known),
            hostname,
            directory: container.working_dir.clone(),
            notes,
        })
    }

    /// The value of a variable.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// What is at a path, from the working directory if it does not begin with a slash.
    pub(super) fn look(&self, path: &str) -> Found<'_> {
        match &self.directory {
            _ if path.starts_with('/') => self.files.look(path),
            Some(directory) => self.files.look(&format!("{directory}/{path}")),
            None => Found::Unknown,
        }
    }
}

/// A container of any sort. An ephemeral one has the fields of others, under another name of its type.
fn container(pod: &Pod, name: &str) -> Option<Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    if let Some(found) = all.find(|container| container.name == name) {
        return Some(found.clone());
    }
    let ephemeral = spec.ephemeral_containers.iter().flatten().find(|container| container.name == name)?;
    windlass::from_value(&serde_json::to_value(ephemeral).ok()?).ok()
}

fn hostname(pod: &Pod) -> String {
    let spec = pod.spec.as_ref();
    let on_host = spec.and_then(|spec| spec.host_network).unwrap_or(false);
    let node = spec.and_then(|spec| spec.node_name.clone()).filter(|_| on_host);
    let mut name = node.or_else(|| spec?.hostname.clone().filter(|name| !name.is_empty()));
    let name = name.get_or_insert_with(|| pod.name_any());
    name.truncate(63);
    name.trim_end_matches(['-', '.']).to_owned()
}

/// An object that a Pod refers to, and whether it may be missing.
#[derive(Debug, Default)]
struct Wanted {
    config_maps: BTreeMap<String, bool>,
    secrets: BTreeMap<String, bool>,
    tokens: BTreeSet<(String, i64)>,
}

impl Wanted {
    fn of(pod: &Pod, container: &Container) -> Self {
        let mut wanted = Self::default();
        for source in container.env_from.iter().flatten() {
            if let Some(one) = &source.config_map_ref {
                want(&mut wanted.config_maps, &one.name, one.optional);
            }
            if let Some(one) = &source.secret_ref {
                want(&mut wanted.secrets, &one.name, one.optional);
            }
        }
        for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            if let Some(one) = &source.config_map_key_ref {
                want(&mut wanted.config_maps, &one.name, one.optional);
            }
            if let Some(one) = &source.secret_key_ref {
                want(&mut wanted.secrets, &one.name, one.optional);
            }
        }
        let mounted: BTreeSet<&str> =
            container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str()).collect();
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        for volume in volumes.filter(|volume| mounted.contains(&*volume.name)) {
            if let Some(one) = &volume.config_map {
                want(&mut wanted.config_maps, &one.name, one.optional);
            }
            if let Some(one) = &volume.secret {
                want(&mut wanted.secrets, one.secret_name.as_deref().unwrap_or_default(), one.optional);
            }
            let sources = volume.projected.iter().flat_map(|one| one.sources.iter().flatten());
            sources.for_each(|source| wanted.project(source));
        }
        wanted
    }

    fn project(&mut self, source: &VolumeProjection) {
        if let Some(one) = &source.config_map {
            want(&mut self.config_maps, &one.name, one.optional);
        }
        if let Some(one) = &source.secret {
            want(&mut self.secrets, &one.name, one.optional);
        }
        self.tokens.extend(source.service_account_token.as_ref().map(token_key));
    }
}

fn want(wanted: &mut BTreeMap<String, bool>, name: &str, optional: Option<bool>) {
    *wanted.entry(name.to_owned()).or_insert(true) &= optional.unwrap_or(false);
}

fn token_key(source: &ServiceAccountTokenProjection) -> (String, i64) {
    (source.audience.clone().unwrap_or_default(), source.expiration_seconds.unwrap_or(3600))
}

impl Known {
    async fn gather(
        client: &Client,
        pod: &Pod,
        container: &Container,
        node: Option<Node>,
        notes: &mut Vec<String>,
    ) -> Self {
        let namespace = pod.namespace().unwrap_or_default();
        let wanted = Wanted::of(pod, container);
        let mut known = Self::default();
        let mut note = |what: &str, name: &str, why: &str| {
            notes.push(format!(
                "windlass: failed to read the {what} {name}, which this container uses: {why}"
            ));
        };
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        for (name, optional) in wanted.config_maps {
            match config_maps.get(&name).await {
                Ok(found) => drop(known.config_maps.insert(name, found)),
                Err(error) if !optional => note("ConfigMap", &name, &error.to_string()),
                Err(_) => {}
            }
        }
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
        for (name, optional) in wanted.secrets {
            match secrets.get(&name).await {
                Ok(found) => drop(known.secrets.insert(name, found)),
                Err(error) if !optional => note("Secret", &name, &error.to_string()),
                Err(_) => {}
            }
        }
        for key in wanted.tokens {
            match token(client, pod, &key).await {
                Ok(token) => drop(known.tokens.insert(key, token)),
                Err(error) => note("token of the ServiceAccount", &account(pod), &error.to_string()),
            }
        }
        known.services = services(client, pod, started(pod, &container.name)).await;
        known.allocatable = node.and_then(|node| node.status?.allocatable).unwrap_or_default();
        known
    }

    /// The files of a ConfigMap.
    pub(super) fn config_map(&self, name: &str) -> Tree {
        let binary = self.config_maps.get(name).and_then(|found| found.binary_data.as_ref());
        let binary = binary.into_iter().flatten().map(|(key, bytes)| (key.clone(), bytes.0.clone()));
        self.config_map_text(name).into_iter().chain(binary).collect()
    }

    /// What of a ConfigMap can be a variable.
    pub(super) fn config_map_text(&self, name: &str) -> Tree {
        let data = self.config_maps.get(name).and_then(|found| found.data.as_ref());
        data.into_iter().flatten().map(|(key, text)| (key.clone(), text.clone().into_bytes())).collect()
    }

    /// The files of a Secret.
    pub(super) fn secret(&self, name: &str) -> Tree {
        let data = self.secrets.get(name).and_then(|found| found.data.as_ref());
        data.into_iter().flatten().map(|(key, bytes)| (key.clone(), bytes.0.clone())).collect()
    }

    /// A token of the Pod's ServiceAccount.
    pub(super) fn token(&self, source: &ServiceAccountTokenProjection) -> Option<&str> {
        self.tokens.get(&token_key(source)).map(String::as_str)
    }
}

fn account(pod: &Pod) -> String {
    let name = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
    name.unwrap_or_else(|| "default".to_owned())
}

async fn token(
    client: &Client,
    pod: &Pod,
    (audience, seconds): &(String, i64),
) -> Result<String, windlass::kube::Error> {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let bound = BoundObjectReference {
        kind: Some("Pod".into()),
        api_version: Some("v1".into()),
        name: Some(pod.name_any()),
        uid: pod.uid(),
    };
    let audiences = Some(vec![audience.clone()]).filter(|_| !audience.is_empty());
    let spec = TokenRequestSpec {
        audiences,
        expiration_seconds: Some(*seconds),
        bound_object_ref: Some(bound),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = api.create_token_request(&account(pod), &PostParams::default(), &request).await?;
    Ok(answer.status.and_then(|status| status.token).unwrap_or_default())
}

/// The Services that a container was told about when it started: its namespace's, if it wants them, and the API's.
async fn services(client: &Client, pod: &Pod, started: Option<Timestamp>) -> Vec<Service> {
    let namespace = pod.namespace().unwrap_or_default();
    let linked = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let mut found = Vec::new();
    if linked {
        let api: Api<Service> = Api::namespaced(client.clone(), &namespace);
        found = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        found.retain(|service| {
            let created = service.metadata.creation_timestamp.as_ref().map(|time| time.0);
            created.is_none_or(|created| started.is_none_or(|started| created <= started))
        });
    }
    if !(linked && namespace == "default") {
        let api: Api<Service> = Api::namespaced(client.clone(), "default");
        found.extend(api.get_opt("kubernetes").await.ok().flatten());
    }
    found
}
