//! `windlass cluster import`: the objects of another cluster, which is only read, in a new one of ours.
//!
//! The new cluster is made in this process, without controllers, in a folder that nobody knows yet; it gets its name when
//! everything is in it. What was admitted once is not asked about again: built-in plug-ins are off meanwhile.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;
use windlass::kube::{
    Api, Client, Error as KubeError,
    api::{DynamicObject, ListParams, PostParams},
};
use windlass_cluster::{Access, Cluster};
use windlass_ui::Kind;

use crate::{
    args::ImportArgs,
    clusters::Home,
    connection,
    error::Error,
    import::{Entry, LeftOut, Owners, Selection, is_definition, name, ordered, prepared, status_of, text},
    printer::Printer,
};

/// So many objects are asked for at a time.
const PAGE: u32 = 500;

/// Built-in plug-ins of admission that can be off.
const PLUGINS: [&str; 7] = [
    "ServiceAccount",
    "LimitRanger",
    "Priority",
    "RuntimeClass",
    "PodSecurity",
    "DefaultStorageClass",
    "DefaultIngressClass",
];

/// What came of an import.
#[derive(Default)]
struct Outcome {
    imported: BTreeMap<String, usize>,
    left_out: LeftOut,
    /// What was refused, in the server's words.
    refused: Vec<String>,
    /// Statuses that the new cluster does not take.
    statuses: Vec<String>,
}

pub(in crate::commands) async fn import(args: &ImportArgs, printer: Printer) -> Result<(), Error> {
    let place = Home::find()?.place(&args.name);
    if place.exists() {
        return Err(crate::clusters::Error::Exists(args.name.clone()).into());
    }
    let ImportArgs { connection, .. } = args;
    let config = connection::config(connection.kubeconfig.as_ref(), connection.context.as_deref()).await?;
    let url = config.cluster_url.to_string();
    let source = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    let selection =
        Selection { namespaces: args.namespace.clone(), kinds: args.kind.clone(), secrets: args.secrets };
    let mut outcome = Outcome::default();
    let entries = read(&source, &selection, &mut outcome.left_out).await?;
    let written = place.create(async |data: &Path| write(data, entries, &mut outcome, args.keep_going).await);
    written.await?;
    tell(&outcome, &url, &args.name, printer)
}

/// Everything that comes along.
async fn read(source: &Client, selection: &Selection, left_out: &mut LeftOut) -> Result<Vec<Entry>, Error> {
    let mut kinds = windlass_ui::kinds(source).await.map_err(|error| Error::Reach(error.into()))?;
    for word in &selection.kinds {
        if !kinds.iter().any(|kind| kind.is_meant_by(word)) {
            return Err(Error::NoKind(word.clone()));
        }
    }
    // Definitions first: they tell in which version objects are stored, so that nobody has to convert them.
    kinds.sort_by_key(|kind| !is_definition(kind));
    let mut stored = BTreeMap::new();
    let mut entries = Vec::new();
    for mut kind in kinds {
        if let Some(version) = stored.get(&(kind.group.clone(), kind.plural.clone())) {
            kind.version = String::clone(version);
        }
        if !selection.wants(&kind) {
            continue;
        }
        // Secrets that were not asked for are not even read.
        if let Some(why) = selection.leaves_out_kind(&kind) {
            left_out.add_kind(&name(&kind), why);
            continue;
        }
        let one = match selection.namespaces.as_slice() {
            [one] if kind.namespaced => Some(one.as_str()),
            _ => None,
        };
        for object in list(&kind.api(source, one), &kind).await? {
            if is_definition(&kind) {
                let version = storage_version(&object);
                let place =
                    (text(&object, "/spec/group").to_owned(), text(&object, "/spec/names/plural").to_owned());
                if !version.is_empty() {
                    stored.insert(place, version);
                }
            }
            match selection.leaves_out(&kind, &object) {
                Some(why) => left_out.add(&name(&kind), why),
                None => entries.push(Entry { kind: kind.clone(), object }),
            }
        }
    }
    Ok(ordered(entries))
}

fn storage_version(definition: &Value) -> String {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let mut stored = versions.filter(|version| version["storage"] == true && version["served"] == true);
    stored.next().map(|version| text(version, "/name").to_owned()).unwrap_or_default()
}

/// All objects of a kind, a page at a time, as of one moment.
async fn list(api: &Api<DynamicObject>, kind: &Kind) -> Result<Vec<Value>, Error> {
    let failed = |error: KubeError| Error::ReadOther { kind: name(kind), source: error.into() };
    let mut objects = Vec::new();
    let mut next = None;
    loop {
        let mut page = ListParams::default().limit(PAGE);
        page.continue_token = next;
        let found = api.list(&page).await.map_err(failed)?;
        let resource = kind.resource();
        for mut object in found.items {
            // Items of a list do not say what they are.
            object.types = Some(windlass::kube::api::TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            });
            objects.push(serde_json::to_value(object).map_err(|error| failed(KubeError::SerdeError(error)))?);
        }
        next = found.metadata.continue_.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok(objects);
        }
    }
}

/// Makes the cluster and puts everything into it.
async fn write(
    data: &Path,
    entries: Vec<Entry>,
    outcome: &mut Outcome,
    keep_going: bool,
) -> Result<(), Error> {
    let access = Access {
        disabled_plugins: PLUGINS.map(str::to_owned).to_vec(),
        always_allow: true,
        ..Access::default()
    };
    let failed = |error| Error::StartCluster(Box::new(error));
    let builder = Cluster::builder().seed(super::entropy()).without_controllers().access(access);
    // Nobody waits for a single write: the folder is thrown away if anything goes wrong.
    let cluster = builder.data_dir(data).fsync(false).start().await.map_err(failed)?;
    let target = cluster.client();
    let mut owners = Owners::new();
    for entry in entries {
        add(&target, &entry, &mut owners, outcome).await;
    }
    cluster.shutdown().await.map_err(|error| Error::RunCluster(error.into()))?;
    if let Some(first) = outcome.refused.first().filter(|_| !keep_going) {
        return Err(Error::Refused { count: outcome.refused.len(), first: first.clone() });
    }
    sync(&data.join("store")).map_err(|source| Error::SyncImport { path: data.to_owned(), source })
}

/// Waits until the disk has what nobody has waited for so far.
fn sync(folder: &Path) -> std::io::Result<()> {
    for entry in fs_err::read_dir(folder)? {
        fs_err::File::open(entry?.path())?.sync_all()?;
    }
    Ok(())
}

async fn add(target: &Client, entry: &Entry, owners: &mut Owners, outcome: &mut Outcome) {
    let Entry { kind, object } = entry;
    let (namespace, own) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let api = kind.api(target, Some(namespace));
    let (new, lost) = prepared(kind, object, owners);
    let label =
        || format!("{} {}{}{own}", name(kind), namespace, if namespace.is_empty() { "" } else { "/" });
    let parsed: DynamicObject = match serde_json::from_value(new) {
        Ok(parsed) => parsed,
        Err(error) => return outcome.refused.push(format!("{}: {error}", label())),
    };
    let created = match api.create(&PostParams::default(), &parsed).await {
        Ok(created) => created,
        Err(KubeError::Api(status)) if status.reason == "AlreadyExists" => {
            // What is there has a uid too, and may own what comes.
            if let Ok(there) = api.get(own).await
                && let Some(uid) = there.metadata.uid
            {
                owners.insert(text(object, "/metadata/uid").to_owned(), uid);
            }
            return outcome.left_out.add(&name(kind), "there already");
        }
        Err(KubeError::Api(status)) => {
            return outcome.refused.push(format!("{}: {}", label(), status.message));
        }
        Err(error) => return outcome.refused.push(format!("{}: {error}", label())),
    };
    *outcome.imported.entry(name(kind)).or_default() += 1;
    for _ in 0..lost {
        outcome.left_out.add(&name(kind), "an owner did not come along, and is no longer named");
    }
    if let Some(uid) = &created.metadata.uid {
        owners.insert(text(object, "/metadata/uid").to_owned(), uid.clone());
    }
    if let Some(status) = status_of(kind, object) {
        let mut whole = created;
        whole.data["status"] = status.clone();
        match api.replace_status(own, &PostParams::default(), &whole).await {
            // A kind without a status of its own has it in the object, or none.
            Ok(_) => {}
            Err(KubeError::Api(status)) if matches!(status.code, 404 | 405) => {}
            Err(error) => outcome.statuses.push(format!("{}: {error}", label())),
        }
    }
}

fn tell(outcome: &Outcome, url: &str, cluster: &str, printer: Printer) -> Result<(), Error> {
    let count: usize = outcome.imported.values().sum();
    printer.remark("imported", cluster, format_args!("{count} objects of {url}"))?;
    for (kind, count) in &outcome.imported {
        printer.line(format_args!("  {count:>6}  {kind}"))?;
    }
    if outcome.left_out.rows().next().is_some() {
        printer.line("left out:")?;
    }
    for (kind, why, count) in outcome.left_out.rows() {
        let count = if count == 0 { "all".to_owned() } else { count.to_string() };
        printer.line(format_args!("  {count:>6}  {kind}: {why}"))?;
    }
    for refused in &outcome.refused {
        printer.line(format_args!("  refused: {refused}"))?;
    }
    for refused in &outcome.statuses {
        printer.line(format_args!("  without its status: {refused}"))?;
    }
    super::suggest_start(printer, cluster)
}
