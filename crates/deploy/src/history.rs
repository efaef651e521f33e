//! What was deployed, in the cluster itself: one Secret for each revision, with all its manifests.
//!
//! A revision is written down before the first object is changed, as `pending`, and marked `deployed` after the last. So
//! whoever finds a `pending` one knows that it was not finished, and what it may have left behind.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::Value;
use windlass::{
    k8s_openapi::{ByteString, api::core::v1::Secret},
    kube::{
        self, Api, Client,
        api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams},
        core::ApiResource,
    },
};

use crate::{error::Error, release::Release};

const TYPE: &str = "windlass.dev/release";
const LABEL: &str = "windlass.dev/release";
const REVISION: &str = "windlass.dev/revision";
const STATE: &str = "windlass.dev/state";
const DIGEST: &str = "windlass.dev/digest";
const IMAGE: &str = "windlass.dev/image";
const KEY: &str = "manifests.json.gz";
const MANAGER: &str = "windlass-deploy";
/// How many revisions are kept.
const KEPT: usize = 10;

/// How far a revision has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It was begun.
    Pending,
    /// It is what runs.
    Deployed,
    /// It ran once.
    Superseded,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Deployed => "deployed",
            Self::Superseded => "superseded",
        }
    }
}

/// One revision.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) revision: u64,
    pub(crate) state: State,
    digest: String,
    pub(crate) image: String,
    secret: Secret,
}

/// The revisions of one operator, the oldest first.
pub(crate) struct History<'a> {
    client: &'a Client,
    name: String,
    namespace: String,
    pub(crate) records: Vec<Record>,
}

/// The kind in which revisions are kept.
pub(crate) fn kind() -> ApiResource {
    ApiResource::erase::<Secret>(&())
}

/// Whether an object is one of these records.
pub(crate) fn is_record(labels: Option<&BTreeMap<String, String>>) -> bool {
    labels.is_some_and(|labels| labels.contains_key(LABEL))
}

impl<'a> History<'a> {
    /// Reads what is there.
    pub(crate) async fn read(client: &'a Client, name: &str, namespace: &str) -> Result<Self, Error> {
        let api = Api::<Secret>::namespaced(client.clone(), namespace);
        let params = ListParams::default().labels(&format!("{LABEL}={name}"));
        let found = api.list(&params).await.map_err(|error| Error::Request {
            verb: "list",
            what: format!("the revisions of {name} in the namespace {namespace}"),
            source: error.into(),
        })?;
        let mut records: Vec<Record> = found.items.into_iter().filter_map(Record::of).collect();
        records.sort_by_key(|record| record.revision);
        Ok(Self { client, name: name.to_owned(), namespace: namespace.to_owned(), records })
    }

    /// Notes that a release is about to be deployed. One that is the last already is continued.
    pub(crate) async fn begin(&mut self, release: &Release) -> Result<u64, Error> {
        let digest = release.digest();
        if let Some(last) = self.records.last().filter(|last| last.digest == digest) {
            return Ok(last.revision);
        }
        let revision = self.records.last().map_or(1, |last| last.revision + 1);
        let data =
            pack(release.objects()).map_err(|source| Error::Record { verb: "write", revision, source })?;
        let text = |text: &str| text.to_owned();
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(format!("windlass-release-{}-{revision}", self.name)),
                namespace: Some(self.namespace.clone()),
                labels: Some(BTreeMap::from([
                    (text("app.kubernetes.io/managed-by"), text("windlass")),
                    (text(LABEL), self.name.clone()),
                ])),
                annotations: Some(BTreeMap::from([
                    (text(REVISION), revision.to_string()),
                    (text(STATE), text(State::Pending.word())),
                    (text(DIGEST), digest),
                    (text(IMAGE), text(release.image().unwrap_or_default())),
                ])),
                ..ObjectMeta::default()
            },
            type_: Some(text(TYPE)),
            data: Some(BTreeMap::from([(text(KEY), ByteString(data))])),
            ..Secret::default()
        };
        self.write(&secret, revision).await?;
        self.records.extend(Record::of(secret));
        Ok(revision)
    }

    /// Notes that a revision is what runs now, and forgets those that are too old.
    pub(crate) async fn finish(&mut self, revision: u64) -> Result<(), Error> {
        for index in 0..self.records.len() {
            let record = &self.records[index];
            let state = match record.state {
                _ if record.revision == revision => State::Deployed,
                State::Deployed => State::Superseded,
                // It was begun, and something else came after it: it never ran.
                State::Pending => continue,
                State::Superseded => continue,
            };
            let mut secret = record.secret.clone();
            let annotations = secret.metadata.annotations.get_or_insert_default();
            annotations.insert(STATE.to_owned(), state.word().to_owned());
            self.write(&secret, record.revision).await?;
            self.records[index].state = state;
            self.records[index].secret = secret;
        }
        let pending: Vec<u64> = self.pending().filter(|it| *it != revision).collect();
        let old = self.records.len().saturating_sub(pending.len()).saturating_sub(KEPT);
        let old = self.records.iter().filter(|record| record.state == State::Superseded).take(old);
        let old: Vec<u64> = old.map(|record| record.revision).chain(pending).collect();
        for revision in old {
            self.remove(revision).await?;
        }
        Ok(())
    }

    fn pending(&self) -> impl Iterator<Item = u64> + '_ {
        self.records.iter().filter(|record| record.state == State::Pending).map(|record| record.revision)
    }

    /// The revision to go back to: the last that ran before the one that runs; if that is not known to, the last that ran.
    pub(crate) fn former(&self) -> Option<&Record> {
        let last = self.records.last()?;
        if last.state == State::Pending {
            return self.records.iter().rfind(|record| record.state != State::Pending);
        }
        self.records.iter().rfind(|record| record.revision < last.revision && record.state != State::Pending)
    }

    /// A record by its number.
    pub(crate) fn revision(&self, revision: u64) -> Option<&Record> {
        self.records.iter().find(|record| record.revision == revision)
    }

    /// Everything that the revision which runs, and those that were begun after it, may have put into the cluster. What older
    /// ones had was deleted in their time, and whoever has such a name now is somebody else.
    pub(crate) fn objects(&self) -> Result<Vec<Value>, Error> {
        let running = self.records.iter().rfind(|record| record.state == State::Deployed);
        let since = running.map_or(0, |record| record.revision);
        let mut objects = Vec::new();
        for record in self.records.iter().filter(|record| record.revision >= since) {
            objects.extend(record.objects()?);
        }
        Ok(objects)
    }

    /// Forgets everything.
    pub(crate) async fn forget(&mut self) -> Result<(), Error> {
        let all: Vec<u64> = self.records.iter().map(|record| record.revision).collect();
        for revision in all {
            self.remove(revision).await?;
        }
        Ok(())
    }

    async fn remove(&mut self, revision: u64) -> Result<(), Error> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let record = self.records.iter().find(|record| record.revision == revision);
        let name = record.and_then(|record| record.secret.metadata.name.clone()).unwrap_or_default();
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(failed("delete", &name, error)),
        }
        self.records.retain(|record| record.revision != revision);
        Ok(())
    }

    async fn write(&self, secret: &Secret, revision: u64) -> Result<(), Error> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let name = secret.metadata.name.clone().unwrap_or_default();
        let mut body = serde_json::to_value(secret).map_err(|error| Error::Record {
            verb: "write",
            revision,
            source: error.into(),
        })?;
        if let Some(metadata) = body["metadata"].as_object_mut() {
            for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
                metadata.remove(field);
            }
        }
        let written = api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(body)).await;
        written.map(drop).map_err(|error| failed("write", &name, error))
    }
}

fn failed(verb: &'static str, name: &str, error: kube::Error) -> Error {
    Error::Request { verb, what: format!("Secret {name}"), source: error.into() }
}

impl Record {
    fn of(secret: Secret) -> Option<Self> {
        let annotations = secret.metadata.annotations.as_ref()?;
        let state = match annotations.get(STATE)?.as_str() {
            "pending" => State::Pending,
            "deployed" => State::Deployed,
            "superseded" => State::Superseded,
            _ => return None,
        };
        Some(Self {
            revision: annotations.get(REVISION)?.parse().ok()?,
            state,
            digest: annotations.get(DIGEST).cloned().unwrap_or_default(),
            image: annotations.get(IMAGE).cloned().unwrap_or_default(),
            secret,
        })
    }

    /// The manifests of the revision.
    pub(crate) fn objects(&self) -> Result<Vec<Value>, Error> {
        let data = self.secret.data.as_ref().and_then(|data| data.get(KEY));
        let read = data.ok_or_else(|| "it is empty".into()).and_then(|data| unpack(&data.0));
        read.map_err(|source| Error::Record { verb: "read", revision: self.revision, source })
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A Secret holds a MiB; schemas are long and say the same again and again.
fn pack(objects: &[Value]) -> Result<Vec<u8>, Cause> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&serde_json::to_vec(objects)?)?;
    Ok(encoder.finish()?)
}

fn unpack(data: &[u8]) -> Result<Vec<Value>, Cause> {
    /// More than any operator's manifests, and less than what a few bytes could become.
    const MOST: u64 = 64 << 20;
    let mut text = Vec::new();
    GzDecoder::new(data).take(MOST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
