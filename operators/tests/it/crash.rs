//! The operator is killed at every write in turn, and another one goes on: the end is always the same.
//!
//! A life is a create, a change and a deletion. One undisturbed life tells how many writes there are and what stands
//! at the end of each stage; then the operator of the n-th life dies at its n-th write, once before the API server has
//! seen that write, and once after, with the answer lost.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{ConfigMap, Pod, Service},
        networking::v1::Ingress,
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
    client::Body,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower::Service as TowerService;
use windlass::Operator;
use windlass_cluster::{Cluster, Identity};
use windlass_operators::install;

use crate::{
    bed::{ACCOUNT, Bed, Running, eventually, until_empty},
    suite::Subject,
};

/// How many lives are lived at the same time.
const AT_ONCE: usize = 6;

/// What happens to the write at which the operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// It never reaches the API server.
    Unsent,
    /// It takes effect, and the answer is lost.
    Unanswered,
}

/// A client that dies at its n-th write.
#[derive(Clone)]
struct Fuse {
    left: Arc<AtomicI64>,
    last: Last,
    blown: CancellationToken,
}

impl Fuse {
    fn new(writes: i64, last: Last) -> Self {
        Self { left: Arc::new(AtomicI64::new(writes)), last, blown: CancellationToken::new() }
    }

    fn around(&self, client: Client) -> Client {
        Client::new(Fused { inner: client, fuse: self.clone() }, "default")
    }
}

#[derive(Clone)]
struct Fused {
    inner: Client,
    fuse: Fuse,
}

type Answer = http::Response<Body>;

impl TowerService<http::Request<Body>> for Fused {
    type Response = Answer;
    type Error = tower::BoxError;
    type Future = BoxFuture<'static, Result<Answer, tower::BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let fuse = self.fuse.clone();
        // Events depend on what else goes on, and nothing depends on them.
        let counts = request.method() != http::Method::GET && !request.uri().path().contains("/events");
        let left = if counts { fuse.left.fetch_sub(1, Ordering::SeqCst) } else { i64::MAX };
        let client = self.inner.clone();
        async move {
            if left == 1 && fuse.last == Last::Unanswered {
                let _ = client.send(request).await;
                fuse.blown.cancel();
                return Err("the operator died before the answer".into());
            }
            if left <= 1 || fuse.blown.is_cancelled() {
                fuse.blown.cancel();
                return Err("the operator is dead".into());
            }
            Ok(client.send(request).await?)
        }
        .boxed()
    }
}

/// What stands in a namespace, without what differs from one life to the next.
async fn standing(bed: &Bed, subject: Subject) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(objects::<Deployment>(bed).await);
    found.extend(objects::<Service>(bed).await);
    found.extend(objects::<PodDisruptionBudget>(bed).await);
    found.extend(objects::<HorizontalPodAutoscaler>(bed).await);
    found.extend(objects::<Ingress>(bed).await);
    found.extend(objects::<ConfigMap>(bed).await);
    let pods = bed.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
    let mut images: Vec<String> = pods
        .iter()
        .map(|pod| format!("Pod of {:?}", pod.spec.as_ref().unwrap().containers[0].image))
        .collect();
    images.sort();
    found.extend(images);
    for object in bed.dynamic(subject.name).list(&ListParams::default()).await.unwrap().items {
        let status = &object.data["status"];
        let reasons = status["conditions"].as_array().map(|all| {
            all.iter()
                .map(|it| format!("{}={}/{}", it["type"], it["status"], it["reason"]))
                .collect::<Vec<_>>()
        });
        found.push(format!("{} {:?} {:?}", object.name_any(), object.finalizers(), reasons));
    }
    found
}

pub(crate) async fn objects<K>(bed: &Bed) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let all = bed.api::<K>().list(&ListParams::default()).await.unwrap().items;
    let own = all.into_iter().filter(|object| object.name_any() != "kube-root-ca.crt");
    own.map(|object| {
        let owners: Vec<String> =
            object.owner_references().iter().map(|owner| format!("{}/{}", owner.kind, owner.name)).collect();
        let mut value = serde_json::to_value(&object).unwrap();
        if let Some(spec) = value["spec"].as_object_mut() {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        let text =
            format!("{} {} {owners:?} {} {}", K::kind(&()), object.name_any(), value["spec"], value["data"]);
        // Labels hold the uid of this life's object.
        let uid = object.owner_references().first().map(|owner| owner.uid.clone()).unwrap_or_default();
        if uid.is_empty() { text } else { text.replace(&uid, "UID") }
    })
    .collect()
}

/// What happens to an object in its life, stage by stage, and how to tell that a stage is over.
pub(crate) trait Story: Copy + Send + Sync {
    /// How many stages there are. After the last one nothing is left.
    fn stages(&self) -> usize;
    /// What a user does at the beginning of a stage.
    fn act(&self, bed: &Bed, stage: usize) -> impl Future<Output = ()> + Send;
    /// Waits until a stage is over.
    fn done(&self, bed: &Bed, stage: usize) -> impl Future<Output = ()> + Send;
    /// What stands, without what differs from one life to the next.
    fn standing(&self, bed: &Bed) -> impl Future<Output = Vec<String>> + Send;
}

/// Waits until an object is gone, which costs less than to look at all that stands.
pub(crate) async fn gone(bed: &Bed, kind: &str, name: &str) {
    eventually(&format!("{kind} {name} is gone"), || async {
        bed.dynamic(kind).get_opt(name).await.unwrap().is_none().then_some(())
    })
    .await;
}

impl Story for Subject {
    fn stages(&self) -> usize {
        3
    }

    async fn act(&self, bed: &Bed, stage: usize) {
        match stage {
            0 => drop(self.create(bed, self.object("it", 2)).await),
            1 => {
                let change = json!({"spec": {self.size_field: 1, "image": self.other_image}});
                self.merge(bed, "it", change).await;
            }
            _ => drop(bed.dynamic(self.name).delete("it", &DeleteParams::default()).await.unwrap()),
        }
    }

    async fn done(&self, bed: &Bed, stage: usize) {
        let size = if stage == 0 { 2 } else { 1 };
        if stage < 2 {
            self.settled(bed, "it", size).await;
            eventually("no Pod is left that should not be", || async {
                let pods = bed.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
                (pods.len() == usize::try_from(size).unwrap()).then_some(())
            })
            .await;
        } else {
            gone(bed, self.name, "it").await;
            until_empty("nothing is left", || self.standing(bed)).await;
        }
    }

    async fn standing(&self, bed: &Bed) -> Vec<String> {
        standing(bed, *self).await
    }
}

/// One life, in a namespace of its own.
struct Life<'a, S> {
    cluster: &'a Cluster,
    story: S,
    operator: fn(&str) -> Operator,
}

impl<S: Story> Life<'_, S> {
    /// Returns what stood after each stage. Once the operator has died and its successor has finished that stage, only
    /// the last one follows: the stages between would be those of an undisturbed life.
    async fn live(&self, fuse: &Fuse) -> BTreeMap<usize, Vec<String>> {
        let client = self.cluster.client();
        let bed = Bed::new(client).await;
        let make = || (self.operator)(&bed.namespace).drain_limit(Duration::from_millis(100));
        let rules = make().rbac();
        install::permissions(&bed.client, &bed.namespace, ACCOUNT, rules, false).await.unwrap();
        let limited = || self.cluster.client_as(Identity::service_account(&bed.namespace, ACCOUNT));
        let mut running = Running::start(make(), fuse.around(limited()));
        let last = self.story.stages() - 1;
        let mut mortal = true;
        let mut stood = BTreeMap::new();
        for stage in 0..=last {
            if !mortal && stage < last {
                continue;
            }
            self.story.act(&bed, stage).await;
            if mortal {
                tokio::select! {
                    () = self.story.done(&bed, stage) => {}
                    () = fuse.blown.cancelled() => {
                        running.kill();
                        running = Running::start(make(), limited());
                        mortal = false;
                    }
                }
            }
            self.story.done(&bed, stage).await;
            stood.insert(stage, self.story.standing(&bed).await);
        }
        running.kill();
        stood
    }
}

/// Lives one life undisturbed, and one for each write at which the operator may die, twice.
pub(crate) async fn survives_a_crash_at_every_write<S: Story>(story: S, operator: fn(&str) -> Operator) {
    const MANY: i64 = 1_000_000;
    let cluster = Cluster::start().await.unwrap();
    install::crds(&cluster.client(), operator("default").crds()).await.unwrap();
    let life = Life { cluster: &cluster, story, operator };
    let whole = Fuse::new(MANY, Last::Unsent);
    let expected = life.live(&whole).await;
    let writes = MANY - whole.left.load(Ordering::SeqCst);
    assert!(writes >= 4, "children and status were written: {writes}");
    let deaths = (1..=writes).flat_map(|write| [(write, Last::Unsent), (write, Last::Unanswered)]);
    let life = &life;
    let expected = &expected;
    stream::iter(deaths)
        .for_each_concurrent(AT_ONCE, |(write, last)| async move {
            let stood = life.live(&Fuse::new(write, last)).await;
            for (stage, stood) in &stood {
                assert_eq!(stood, &expected[stage], "stage {stage} after a death at write {write}, {last:?}");
            }
        })
        .await;
    cluster.shutdown().await.unwrap();
}

/// Defines the crash test of a kind.
macro_rules! crash_test {
    ($subject:expr, $operator:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn it_survives_a_crash_at_every_write() {
            crate::crash::survives_a_crash_at_every_write($subject, $operator).await;
        }
    };
}
pub(crate) use crash_test;
