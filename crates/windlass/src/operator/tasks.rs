//! Named tasks, none of which may end before the run does.

use std::{collections::BTreeMap, future::Future, pin::Pin};

use tokio::task::{Id, JoinSet};

use super::RunError;

pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A set of tasks that are supervised together. Dropping it stops them.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    set: JoinSet<Result<(), String>>,
    names: BTreeMap<Id, String>,
}

impl Tasks {
    pub(super) fn spawn(&mut self, name: String, task: Task) {
        self.spawn_fallible(name, async move {
            task.await;
            Ok(())
        });
    }

    /// A task that says why it ended.
    pub(super) fn spawn_fallible(
        &mut self,
        name: String,
        task: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Waits for the first task to end, which is an error.
    pub(super) async fn ended(&mut self) -> RunError {
        let (id, reason) = match self.set.join_next_with_id().await {
            None => return std::future::pending().await,
            Some(Ok((id, Ok(())))) => (id, "it returned".to_owned()),
            Some(Ok((id, Err(reason)))) => (id, reason),
            Some(Err(error)) => (error.id(), error.to_string()),
        };
        RunError::TaskEnded { task: self.names.remove(&id).unwrap_or_default(), reason }
    }

    /// Waits for all of them to end by themselves.
    pub(super) async fn joined(&mut self) {
        while self.set.join_next().await.is_some() {}
    }

    /// Stops all of them and waits until they have stopped.
    pub(super) async fn stop(mut self) {
        self.set.shutdown().await;
    }
}
