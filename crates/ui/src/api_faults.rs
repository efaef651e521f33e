//! The API made slow or unavailable for one account, by whoever runs the API server.

use std::{fmt, sync::Arc};

/// What an account meets when it uses the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFault {
    /// Every request takes seconds.
    Slow,
    /// Every request fails.
    Unavailable,
}

impl ApiFault {
    /// All of them, by the words of the page's buttons.
    pub(crate) const ALL: [(&'static str, Self); 2] =
        [("api-slow", Self::Slow), ("api-unavailable", Self::Unavailable)];

    pub(crate) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, fault)| *fault == self).map_or("", |(word, _)| word)
    }
}

type Set = dyn Fn(&str, Option<ApiFault>) + Send + Sync;
type Get = dyn Fn(&str) -> Option<ApiFault> + Send + Sync;

/// A hold on an API server that can fail on purpose.
#[derive(Clone)]
pub struct ApiFaults {
    set: Arc<Set>,
    get: Arc<Get>,
}

impl fmt::Debug for ApiFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiFaults").finish_non_exhaustive()
    }
}

impl ApiFaults {
    /// By what sets the fault of a user, and what tells it.
    pub fn new(
        set: impl Fn(&str, Option<ApiFault>) + Send + Sync + 'static,
        get: impl Fn(&str) -> Option<ApiFault> + Send + Sync + 'static,
    ) -> Self {
        Self { set: Arc::new(set), get: Arc::new(get) }
    }

    pub(crate) fn set(&self, user: &str, fault: Option<ApiFault>) {
        (self.set)(user, fault);
    }

    pub(crate) fn get(&self, user: &str) -> Option<ApiFault> {
        (self.get)(user)
    }
}

/// The user that a service account is to the API server.
pub(crate) fn user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}
