//! What a failure means for a request.

use lock_core::{Effect, ErrorKind};

/// What to do if no server answers.
pub(super) const CHECK_SERVERS: &str = "check that a majority of the servers is running and reachable";

/// What a failure means.
pub(super) struct Meaning {
    pub(super) kind: ErrorKind,
    pub(super) effect: Effect,
    pub(super) remedy: Option<&'static str>,
}

impl Meaning {
    pub(super) const fn new(kind: ErrorKind, effect: Effect) -> Self {
        Self { kind, effect, remedy: None }
    }

    pub(super) const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy: Some(remedy), ..self }
    }
}
