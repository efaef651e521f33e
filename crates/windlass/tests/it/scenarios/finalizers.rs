//! Objects that may not go before something has been done.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use windlass::{
    Action, Context, Controller, Operator, Reconciler,
    kube::{
        ResourceExt,
        api::{DeleteParams, PostParams},
    },
    rbac,
};

use crate::{
    fixture::{Cluster, eventually},
    pool::{FINALIZER, Pool, PoolSpec, Pools},
};

pub async fn a_finalizer_holds_the_object_until_the_cleanup_is_done(cluster: Cluster) {
    let pools = Pools::default();
    let controller = pools.controller().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("pool-operator").controller(controller));
    let api = cluster.api::<Pool>();
    api.create(&PostParams::default(), &Pool::new("p", PoolSpec { size: 0 })).await.unwrap();
    eventually("the finalizer is on", || async {
        api.get("p").await.unwrap().finalizers().contains(&FINALIZER.to_owned())
    })
    .await;
    api.delete("p", &DeleteParams::default()).await.unwrap();
    let runs = pools.runs.load(Ordering::SeqCst);
    eventually("some failed cleanups", || async { pools.runs.load(Ordering::SeqCst) > runs + 3 }).await;
    assert!(api.get_opt("p").await.unwrap().is_some(), "the cleanup is not done");
    pools.clean.store(true, Ordering::SeqCst);
    eventually("the pool is gone", || async { api.get_opt("p").await.unwrap().is_none() }).await;
    running.stop().await;
}

/// Deletes its object in the middle of the first run, and goes on with that run.
#[derive(Clone, Default)]
struct Interrupted {
    /// Runs that found the object deleted.
    cleanups: Arc<AtomicUsize>,
    /// What the first run was told.
    lives: Arc<AtomicBool>,
}

impl Reconciler for Interrupted {
    type Resource = Pool;
    type Error = windlass::Error;

    async fn reconcile(&self, pool: Arc<Pool>, ctx: &Context<Pool>) -> windlass::Result<Action> {
        if pool.metadata.deletion_timestamp.is_some() {
            self.cleanups.fetch_add(1, Ordering::SeqCst);
            ctx.release(FINALIZER).await?;
            return Ok(Action::await_change());
        }
        assert!(!ctx.guard(FINALIZER).await?.is_finished(), "it lives");
        ctx.delete(&*pool).await?;
        let namespace = pool.namespace();
        let is_going = || {
            let cached = ctx.get::<Pool>(namespace.as_deref(), &pool.name_any());
            cached
                .is_ok_and(|cached| cached.is_some_and(|cached| cached.metadata.deletion_timestamp.is_some()))
        };
        while !is_going() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.lives.store(!ctx.guard(FINALIZER).await?.is_finished(), Ordering::SeqCst);
        Ok(Action::await_change())
    }
}

pub async fn a_run_that_began_before_the_deletion_lets_nothing_go(cluster: Cluster) {
    let interrupted = Interrupted::default();
    interrupted.lives.store(true, Ordering::SeqCst);
    let may_delete = rbac::rule("it.windlass.dev", ["pools"], ["delete"]);
    let controller = Controller::new(interrupted.clone()).namespace(&cluster.namespace).permits([may_delete]);
    let running = cluster.run(Operator::new("pool-operator").controller(controller));
    let api = cluster.api::<Pool>();
    api.create(&PostParams::default(), &Pool::new("p", PoolSpec { size: 0 })).await.unwrap();
    eventually("the pool is gone", || async { api.get_opt("p").await.unwrap().is_none() }).await;
    assert!(!interrupted.lives.load(Ordering::SeqCst), "the first run was told of the deletion");
    assert_eq!(interrupted.cleanups.load(Ordering::SeqCst), 1, "it was cleaned up after");
    running.stop().await;
}
