//! The state of a watch, as start-up and the probes see it.

/// The state of a store's watches: one per namespace, or one for all.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    /// Whether the first list has been received.
    synced: bool,
    /// Whether the API server said that it does not serve the kind.
    absent: bool,
    /// Whether it is too late for anything to be part of the startup.
    live: bool,
    /// The failure since the last success, if there was one.
    failure: Option<Failure>,
}

/// Why a watch does not work.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    /// The server answered, and said no: the kind is unknown to it, or we may not read it.
    pub(crate) refused: bool,
}

impl Health {
    pub(super) fn new(parts: usize, live: bool) -> Self {
        Self { parts: vec![Part { live, ..Part::default() }; parts] }
    }

    /// Whether every first list has been received.
    pub(crate) fn is_synced(&self) -> bool {
        self.parts.iter().all(|part| part.synced)
    }

    /// Whether the kind is known not to be served.
    pub(crate) fn is_absent(&self) -> bool {
        self.parts.iter().any(|part| part.absent)
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.failure().is_some_and(|failure| failure.refused)
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.parts.iter().find_map(|part| part.failure.as_ref())
    }

    pub(super) fn is_live(&self, part: usize) -> bool {
        self.parts[part].live
    }

    pub(super) fn was_synced(&self, part: usize) -> bool {
        self.parts[part].synced
    }

    pub(super) fn was_absent(&self, part: usize) -> bool {
        self.parts[part].absent
    }

    pub(super) fn listed(&mut self, part: usize) {
        self.parts[part] = Part { synced: true, absent: false, live: true, failure: None };
    }

    pub(super) fn missing(&mut self, part: usize, text: String) {
        let failure = Some(Failure { text, refused: true });
        self.parts[part] = Part { synced: false, absent: true, live: true, failure };
    }

    pub(super) fn failed(&mut self, part: usize, failure: Failure) {
        self.parts[part].failure = Some(failure);
    }

    /// Returns whether that is news.
    pub(super) fn recovered(&mut self, part: usize) -> bool {
        self.parts[part].failure.take().is_some()
    }
}
