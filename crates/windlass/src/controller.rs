//! The builder of a controller: what it reconciles, what it owns, what else it listens to.
//!
//! Enters: a reconciler and declarations. Leaves: watches, a queue and workers ([`run`]), and the RBAC rules that
//! the declarations imply.

use std::{fmt, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};

use crate::{
    cache::{Index, Reader},
    error::Error,
    object::{AnyObject, Kind, Object, ObjectKey},
    predicate::Predicate,
    queue::{Backoff, Jitter, Pace, Priority, RateLimit},
    rbac::{Access, Call, Declared, Permit},
    reconciler::Reconciler,
    watches::{Setup, Source, Watch},
};

mod health;
mod run;

pub(crate) use health::Health;
pub use run::PAUSED;
pub(crate) use run::{Prepared, Runnable, Start, Stop};

/// A reconciler with everything it needs to run.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use windlass::{Action, Context, Controller, Reconciler, ObjectKey};
/// # use windlass::k8s_openapi::api::{apps::v1::{Deployment, ReplicaSet}, core::v1::{ConfigMap, Pod}};
/// # struct Deployments;
/// # impl Reconciler for Deployments {
/// #     type Resource = Deployment;
/// #     type Error = windlass::Error;
/// #     async fn reconcile(&self, _: Arc<Deployment>, _: &Context<Deployment>) -> Result<Action, Self::Error> {
/// #         Ok(Action::await_change())
/// #     }
/// # }
/// let controller = Controller::new(Deployments)
///     .owns::<ReplicaSet>()
///     .reads::<Pod>()
///     .index::<Deployment>("config", |d| d.metadata.annotations.iter().flat_map(|a| a.get("config")).cloned().collect())
///     .watches::<ConfigMap, _>(|map, cache| {
///         let name = map.metadata.name.as_deref().unwrap_or_default();
///         let users = cache.indexed::<Deployment>("config", name).unwrap_or_default();
///         users.iter().map(|d| ObjectKey::of(&**d)).collect()
///     })
///     .concurrency(4);
/// ```
pub struct Controller<C: Reconciler> {
    name: String,
    /// The field manager of plain writes, where it is not the operator's.
    manager: Option<String>,
    /// The source of core `v1` events, where they are wanted.
    event_source: Option<String>,
    reconciler: Arc<C>,
    primary: Watch<C::Resource>,
    namespaces: Vec<String>,
    concurrency: usize,
    timeout: Option<Duration>,
    resync: Option<Duration>,
    pace: Pace,
    sources: Vec<Source<C::Resource>>,
    access: Vec<Declared>,
    permits: Vec<(Permit, Call)>,
}

impl<C: Reconciler> fmt::Debug for Controller<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Reconciler> Controller<C> {
    /// A controller for the reconciler's kind, named after it in lower case.
    #[track_caller]
    pub fn new(reconciler: C) -> Self
    where
        C::Resource: Object,
    {
        Self::with(reconciler, Watch::new(), Call::here("Controller::new"))
    }

    /// A controller for a kind that is known only when the program runs. The reconciler's resource is
    /// [`DynamicObject`](kube::core::DynamicObject), or `PartialObjectMeta` for the metadata alone.
    #[track_caller]
    pub fn dynamic(reconciler: C, kind: Kind) -> Self {
        Self::with(reconciler, Watch::of(kind), Call::here("Controller::dynamic"))
    }

    fn with(reconciler: C, primary: Watch<C::Resource>, call: Call) -> Self {
        Self {
            name: primary.kind.kind.to_lowercase(),
            manager: None,
            event_source: None,
            reconciler: Arc::new(reconciler),
            namespaces: Vec::new(),
            concurrency: 1,
            timeout: None,
            resync: None,
            pace: Pace::default(),
            sources: Vec::new(),
            access: vec![Declared { access: Access::Reconciles(primary.kind.clone()), call }],
            primary,
            permits: Vec::new(),
        }
    }

    /// The controller's name in logs, metrics and events. Unique within an operator.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The field manager of what this controller creates, patches and updates; the operator's unless set. Children that
    /// are applied stay the operator's.
    pub fn writes_as(mut self, manager: impl Into<String>) -> Self {
        self.manager = Some(manager.into());
        self
    }

    /// Records events as core `v1` with this source, as the components of Kubernetes do, in place of
    /// `events.k8s.io/v1`.
    pub fn core_events(mut self, source: impl Into<String>) -> Self {
        self.event_source = Some(source.into());
        self
    }

    /// Watches objects of kind `K` that the reconciled objects control, and allows
    /// [`Context::apply`](crate::Context::apply) to write them.
    #[track_caller]
    pub fn owns<K: Object>(self) -> Self {
        self.owns_with(Watch::<K>::new())
    }

    /// As [`owns`](Self::owns), of what a [`Watch`] says: with a selector or a filter, of a kind that may not be
    /// served, or of one that is known only when the program runs.
    ///
    /// Children that no `owns` of the controller watches are an
    /// [`Error::OutOfScope`](crate::Error::OutOfScope) when they are applied.
    #[track_caller]
    pub fn owns_with<K: AnyObject>(mut self, watch: impl Into<Watch<K>>) -> Self {
        let watch = watch.into();
        self.declare(Access::Owns(watch.kind.clone()), Call::here("Controller::owns"));
        self.sources.push(Box::new(move |setup: &mut Setup<C::Resource>| {
            let store = setup.wiring.store_for::<K>(&watch, true)?;
            setup.wiring.own(store.clone());
            setup.wiring.subscribe_owned(&store, watch.filter);
            Ok(())
        }));
        self
    }

    /// Watches objects of kind `K`; the function says which objects to reconcile when one changes.
    ///
    /// After an update it is asked about the old copy as well as the new one.
    #[track_caller]
    pub fn watches<K, F>(self, map: F) -> Self
    where
        K: Object,
        F: Fn(&K, &Reader) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        self.watches_with(Watch::<K>::new(), map)
    }

    /// As [`watches`](Self::watches), of what a [`Watch`] says.
    #[track_caller]
    pub fn watches_with<K, F>(mut self, watch: impl Into<Watch<K>>, map: F) -> Self
    where
        K: AnyObject,
        F: Fn(&K, &Reader) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        let watch = watch.into();
        self.declare(Access::Reads(watch.kind.clone()), Call::here("Controller::watches"));
        self.sources.push(Box::new(move |setup: &mut Setup<C::Resource>| {
            let store = setup.wiring.store::<K>(&watch)?;
            setup.wiring.subscribe_secondary(&store, watch.filter, map);
            Ok(())
        }));
        self
    }

    /// Caches objects of kind `K` for reading, without reconciling anything when they change.
    #[track_caller]
    pub fn reads<K: Object>(self) -> Self {
        self.reads_with(Watch::<K>::new())
    }

    /// As [`reads`](Self::reads), of what a [`Watch`] says.
    #[track_caller]
    pub fn reads_with<K: AnyObject>(mut self, watch: impl Into<Watch<K>>) -> Self {
        let watch = watch.into();
        self.declare(Access::Reads(watch.kind.clone()), Call::here("Controller::reads"));
        self.sources.push(Box::new(move |setup: &mut Setup<C::Resource>| {
            setup.wiring.store::<K>(&watch).map(|_| ())
        }));
        self
    }

    /// Reconciles the objects whose keys a stream yields: for events from outside the cluster.
    pub fn triggered_by(mut self, keys: impl Stream<Item = ObjectKey> + Send + 'static) -> Self {
        self.sources.push(Box::new(move |setup: &mut Setup<C::Resource>| {
            let (queue, metrics) = (setup.wiring.queue.clone(), setup.wiring.metrics.clone());
            setup.tasks.push(Box::pin(async move {
                let mut keys = std::pin::pin!(keys);
                while let Some(key) = keys.next().await {
                    if queue.add(key, Priority::NORMAL) {
                        metrics.added();
                    }
                }
            }));
            Ok(())
        }));
        self
    }

    /// Indexes the cached objects of kind `K`, which must be watched too, under the values of a function.
    ///
    /// The name is known to all controllers of the operator. Several may declare one index, with one function that holds
    /// no values; anything else of the same name is an [`Error::IndexExists`](crate::Error::IndexExists) at the start.
    pub fn index<K: Object>(
        self,
        name: impl Into<String>,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.index_of(Kind::of::<K>(), name, values)
    }

    /// As [`index`](Self::index), for dynamic kinds.
    pub fn index_of<K: AnyObject>(
        mut self,
        kind: Kind,
        name: impl Into<String>,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let index = Index::new(name.into(), values);
        self.sources.push(Box::new(move |setup: &mut Setup<C::Resource>| {
            setup.indexes.push(Box::new(move |reader: &Reader| {
                if reader.stores_of::<K>(&kind)?.add_index(&index) {
                    return Ok(());
                }
                Err(Error::IndexExists { kind: Box::new(kind), index: index.name().to_owned() })
            }));
            Ok(())
        }));
        self
    }

    /// How many objects are reconciled at the same time: 1 unless told otherwise. Never the same one twice.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.concurrency = workers.max(1);
        self
    }

    /// Only updates of the reconciled objects that pass a filter lead to a run.
    pub fn filter(mut self, filter: Predicate<C::Resource>) -> Self {
        self.primary = self.primary.filter(filter);
        self
    }

    /// The reconciled kind may be installed later, or removed, as one that somebody else defines: the operator starts and
    /// stays ready without it, and works on it while it is served.
    pub fn optional(mut self) -> Self {
        self.primary = self.primary.optional();
        self
    }

    /// Reconciles only objects that match a label selector.
    pub fn selector(mut self, labels: impl Into<String>) -> Self {
        self.primary = self.primary.labels(labels);
        self
    }

    /// Watches this namespace only, and those of further calls. The RBAC rules then fit Roles instead of a
    /// ClusterRole.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        if !self.namespaces.contains(&namespace) {
            self.namespaces.push(namespace);
        }
        self
    }

    /// Watches these namespaces only; without any, all of them.
    pub fn namespaces<N: Into<String>>(self, namespaces: impl IntoIterator<Item = N>) -> Self {
        namespaces.into_iter().fold(self, Self::namespace)
    }

    /// Ends a run that takes longer, as a failure. Off unless set.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Reconciles every object at least this often, and a tenth more often so that they spread out. Off unless
    /// set.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// The delays between the retries of a failing object: 5 ms doubling to 1,000 s unless set.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.pace.backoff = backoff;
        self
    }

    /// How far the retries of objects that failed together are spread: up to a tenth of the delay unless set.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.pace.jitter = jitter;
        self
    }

    /// What the retries of all objects together may take: ten a second and a hundred at once unless set.
    pub fn retry_limit(mut self, limit: Option<RateLimit>) -> Self {
        self.pace.retries = limit;
        self
    }

    /// Reconciles one object at most this often; what happens in between leads to one run. Off unless set.
    pub fn interval(mut self, shortest: Duration) -> Self {
        self.pace.interval = Some(shortest);
        self
    }

    /// Further permissions that the reconciler needs, beyond those that the builder implies.
    ///
    /// An operator that is restricted to namespaces gets them there; what lives in no namespace (URLs, Kubernetes'
    /// own cluster-wide kinds, those of the operator's own) it gets for the cluster. Other cluster-wide kinds are
    /// unknown here: [`rbac::cluster_wide`](crate::rbac::cluster_wide) says so.
    #[track_caller]
    pub fn permits<P: Into<Permit>>(mut self, rules: impl IntoIterator<Item = P>) -> Self {
        let call = Call::here("Controller::permits");
        self.permits.extend(rules.into_iter().map(|rule| (rule.into(), call)));
        self
    }

    fn declare(&mut self, access: Access, call: Call) {
        self.access.push(Declared { access, call });
    }
}
