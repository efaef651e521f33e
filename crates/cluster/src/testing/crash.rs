//! An operator is killed at every write in turn, and another one goes on: the end is always the same.
//!
//! One undisturbed life tells what stands whenever the scenario waits, and at its end. Then the operator of the n-th life
//! dies at its n-th write, once before the API server has seen that write, and once after, with the answer lost; its
//! successor must end in the same state, and have nothing left to write. The first life in which no n-th write comes is
//! the last. Each life has a cluster of its own, on the paused clock.

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};
use windlass::{
    Failure, Kind, Operator,
    k8s_openapi::NamespaceResourceScope,
    kube::{Api, Client, Resource},
    serde_json::Value,
    testing::{self, Fuse, LastWrite},
};

use super::{
    apply::{apply, delete, documents},
    environment::{Environment, NAMESPACE, is_paused},
    standing::{Normalise, standing},
};
use crate::{Builder, Cluster};

/// How long nothing may happen until a scenario goes on: what waits a moment before it works has worked by then.
const CALM: Duration = Duration::from_secs(2);

/// Kills an operator at every write in turn, and checks that its successor always ends in the same state, with nothing
/// left to write. The scenario is what users do meanwhile.
///
/// ```
/// # use std::sync::Arc;
/// # use windlass::{Action, Children, Context, Controller, Operator, Reconciler, kube::ResourceExt};
/// # use windlass::k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # struct Secrets;
/// # impl Reconciler for Secrets {
/// #     type Resource = ConfigMap;
/// #     type Error = windlass::Error;
/// #     async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> windlass::Result<Action> {
/// #         let mut secret = Secret::default();
/// #         secret.metadata.name = Some(map.name_any());
/// #         ctx.apply(Children::new().with(secret)).await?;
/// #         Ok(Action::await_change())
/// #     }
/// # }
/// # fn operator() -> Operator {
/// #     Operator::new("secret-operator")
/// #         .controller(Controller::new(Secrets).owns::<Secret>())
/// #         .namespaces(["default"])
/// # }
/// # fn main() {
/// # let mut builder = tokio::runtime::Builder::new_current_thread();
/// # builder.enable_all().start_paused(true).build().unwrap().block_on(async {
/// use windlass_cluster::testing::crash_at_every_write;
///
/// const SAMPLE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}";
///
/// // In a test: #[tokio::test(start_paused = true)]
/// crash_at_every_write(operator, |user| async move {
///     user.apply_yaml(SAMPLE).await;
///     user.settled().await;
///     user.delete_yaml(SAMPLE).await;
/// })
/// .await;
/// # });
/// # }
/// ```
///
/// What is compared are the objects of the kinds that the operator reconciles or owns, whenever the scenario waits
/// ([`User::settled`]) and at its end, without uids, versions, times, addresses, generated names, digests, the
/// contents of Secrets and the status of built-in kinds.
///
/// # Panics
///
/// When a life ends otherwise than the undisturbed one, with the write at which its operator died; when something is left
/// to write; when a run fails of an operator that was not killed; and without a paused clock.
pub async fn crash_at_every_write<F: Future<Output = ()>>(
    operator: impl Fn() -> Operator + Send + Sync + 'static,
    scenario: impl Fn(User) -> F,
) {
    CrashTest::new(operator).run(scenario).await;
}

/// [`crash_at_every_write`] with settings.
pub struct CrashTest {
    operator: Arc<dyn Fn() -> Operator + Send + Sync>,
    cluster: Box<dyn Fn() -> Builder + Send + Sync>,
    normalise: Box<Normalise>,
    allowed: Arc<dyn Fn(&Failure) -> bool + Send + Sync>,
}

impl fmt::Debug for CrashTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashTest").finish_non_exhaustive()
    }
}

/// When an operator dies.
#[derive(Clone, Copy, Debug)]
struct Death {
    write: u64,
    how: LastWrite,
}

/// How a life went.
struct Life {
    /// What stood whenever the scenario waited, and at the end.
    stood: Vec<Vec<String>>,
    died: bool,
}

impl CrashTest {
    /// The operator that the function makes, on a cluster with one simulated node.
    pub fn new(operator: impl Fn() -> Operator + Send + Sync + 'static) -> Self {
        Self {
            operator: Arc::new(operator),
            cluster: Box::new(|| Cluster::builder().heartbeat(None)),
            normalise: Box::new(|_| {}),
            allowed: Arc::new(|_| false),
        }
    }

    /// Another cluster for each life.
    pub fn cluster(mut self, builder: impl Fn() -> Builder + Send + Sync + 'static) -> Self {
        self.cluster = Box::new(builder);
        self
    }

    /// Takes out of each object what may differ between two lives, beyond what is taken out anyway.
    pub fn ignoring(mut self, normalise: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.normalise = Box::new(normalise);
        self
    }

    /// Lets runs fail of which the function says so, as [`Environment::allow_failures`] does; what fails because its
    /// operator is dead may fail anyway.
    pub fn allow_failures(mut self, allowed: impl Fn(&Failure) -> bool + Send + Sync + 'static) -> Self {
        self.allowed = Arc::new(allowed);
        self
    }

    /// Lives an undisturbed life, and then one for each way to die. Returns at how many writes it died.
    ///
    /// # Panics
    ///
    /// As [`crash_at_every_write`].
    pub async fn run<F: Future<Output = ()>>(self, scenario: impl Fn(User) -> F) -> u64 {
        assert!(is_paused(), "a crash test needs a paused clock: #[tokio::test(start_paused = true)]");
        let expected = self.live(None, &scenario).await.stood;
        for write in 1.. {
            for how in [LastWrite::Unsent, LastWrite::Unanswered] {
                let life = self.live(Some(Death { write, how }), &scenario).await;
                if !life.died {
                    assert!(write > 1, "the operator has written nothing: the scenario gives it no work");
                    return write - 1;
                }
                compare(&expected, &life.stood, &format!("the operator died at write {write}, {how:?}"));
            }
        }
        0
    }

    async fn live<F: Future<Output = ()>>(
        &self,
        death: Option<Death>,
        scenario: &impl Fn(User) -> F,
    ) -> Life {
        let fuse =
            death.map_or_else(|| Fuse::new(u64::MAX, LastWrite::Unsent), |d| Fuse::new(d.write, d.how));
        let cluster = (self.cluster)().start().await;
        let cluster = cluster.unwrap_or_else(|error| panic!("the cluster has not started: {error}"));
        let operator = self.operator.clone();
        let kinds = testing::kinds(&operator());
        let env = Environment::mortal(cluster, move || operator(), fuse.clone()).await;
        let mut stage = Stage { env, fuse, alive: true, kinds, test: self };
        stage.allow();
        stage.started().await;
        let (ask, mut asked) = mpsc::channel(1);
        let user = User { client: stage.env.client(), ask };
        let (mut stood, mut story) = (Vec::new(), pin!(scenario(user)));
        loop {
            let fuse = stage.fuse.clone();
            tokio::select! {
                biased;
                () = fuse.blown(), if stage.alive => stage.succeed().await,
                Some(Pause { time, over }) = asked.recv() => {
                    stood.push(stage.calm(time).await);
                    // Whoever waited may have been dropped meanwhile.
                    let _ = over.send(());
                }
                () = &mut story => break,
            }
        }
        stood.push(stage.calm(Duration::ZERO).await);
        stage.nothing_is_left(death).await;
        let died = stage.fuse.is_blown();
        stage.env.stop().await;
        Life { stood, died }
    }
}

/// The cluster of one life, with the operator that may die, and later its successor.
struct Stage<'a> {
    env: Environment,
    fuse: Fuse,
    /// Whether it is still the first operator that works.
    alive: bool,
    kinds: Vec<Kind>,
    test: &'a CrashTest,
}

impl Stage<'_> {
    async fn started(&mut self) {
        let fuse = self.fuse.clone();
        tokio::select! {
            biased;
            () = fuse.blown() => self.succeed().await,
            () = self.env.ready() => {}
        }
    }

    /// Kills the operator, and starts another one, which does not die.
    async fn succeed(&mut self) {
        self.alive = false;
        self.env.replace().await;
        self.allow();
    }

    fn allow(&self) {
        let allowed = self.test.allowed.clone();
        self.env.allow_failures(move |failure| allowed(failure));
    }

    /// Waits until nothing happens any more, whoever dies meanwhile. Returns what stands then.
    async fn calm(&mut self, time: Duration) -> Vec<String> {
        let fuse = self.fuse.clone();
        loop {
            let calm = async {
                tokio::time::sleep(time).await;
                loop {
                    self.env.settled().await;
                    let before = self.env.cluster().revision();
                    tokio::time::sleep(CALM).await;
                    if self.env.cluster().revision() == before {
                        return;
                    }
                }
            };
            tokio::select! {
                biased;
                () = fuse.blown(), if self.alive => {}
                () = calm => break,
            }
            self.succeed().await;
        }
        standing(&self.env.client(), &self.kinds, &*self.test.normalise).await
    }

    /// Reconciles every object once more, and checks that nothing is written.
    async fn nothing_is_left(&mut self, death: Option<Death>) {
        self.env.requests().take_writes();
        self.env.running().handle().requeue_all();
        self.env.settled().await;
        let writes = self.env.requests().take_writes();
        let after = death.map_or(String::new(), |death| format!(", after a death at {death:?}"));
        assert!(writes.is_empty(), "a second reconcile must write nothing, but wrote {writes:#?}{after}");
    }
}

/// A time for which a scenario waits.
struct Pause {
    time: Duration,
    over: oneshot::Sender<()>,
}

/// What a user does in a crash test: anything that an administrator may do. The operator dies behind their back.
#[derive(Clone)]
pub struct User {
    client: Client,
    ask: mpsc::Sender<Pause>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").finish_non_exhaustive()
    }
}

impl User {
    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of a kind in the namespace `default`.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client(), NAMESPACE)
    }

    /// Applies every object of a YAML stream, as `kubectl apply --server-side` does.
    ///
    /// # Panics
    ///
    /// When it is no YAML, and when the API server refuses an object.
    pub async fn apply_yaml(&self, yaml: &str) {
        for object in documents(yaml) {
            self.apply_value(&object).await;
        }
    }

    /// Applies an object.
    ///
    /// # Panics
    ///
    /// When the API server refuses it.
    pub async fn apply_value(&self, object: &Value) {
        if let Err(error) = apply(&self.client, NAMESPACE, object).await {
            let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
            panic!("the API server has refused {kind} {name}: {error}");
        }
    }

    /// Deletes every object of a YAML stream; one that is not there is no error.
    ///
    /// # Panics
    ///
    /// When it is no YAML, and when the API server refuses it.
    pub async fn delete_yaml(&self, yaml: &str) {
        for object in documents(yaml) {
            if let Err(error) = delete(&self.client, NAMESPACE, &object).await {
                let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                panic!("the API server has refused to delete {kind} {name}: {error}");
            }
        }
    }

    /// Waits until nothing happens any more. What stands then is compared with the undisturbed life.
    pub async fn settled(&self) {
        self.advance(Duration::ZERO).await;
    }

    /// Lets time pass, with all that happens in it, and waits until nothing happens any more.
    pub async fn advance(&self, time: Duration) {
        let (over, waiting) = oneshot::channel();
        // The other end lives as long as the scenario.
        let _ = self.ask.send(Pause { time, over }).await;
        let _ = waiting.await;
    }
}

/// Compares what stood, and says which objects differ.
fn compare(expected: &[Vec<String>], stood: &[Vec<String>], when: &str) {
    for (place, (expected, stood)) in expected.iter().zip(stood).enumerate() {
        let missing: Vec<&String> = expected.iter().filter(|line| !stood.contains(line)).collect();
        let surplus: Vec<&String> = stood.iter().filter(|line| !expected.contains(line)).collect();
        assert!(
            expected == stood,
            "{when}, and what stands at wait {} of the scenario differs\nwithout a crash: {missing:#?}\n\
             after the crash: {surplus:#?}",
            place + 1,
        );
    }
    assert_eq!(expected.len(), stood.len(), "{when}, and the scenario waited another number of times");
}
