//! Errors of several nodes in one.

use lock_core::{BackendError, Effect, ErrorKind, Operation};

use crate::BACKEND;

/// The errors of nodes that failed to do what they were asked.
#[derive(Debug)]
pub(super) struct Failures {
    errors: Vec<BackendError>,
    /// So many nodes that every majority includes at least one of them.
    overlap: usize,
}

impl Failures {
    pub(super) fn new(overlap: usize) -> Self {
        Self { errors: Vec::new(), overlap }
    }

    pub(super) fn push(&mut self, error: BackendError) {
        self.errors.push(error);
    }

    /// All of them in one error. `others` is the effect at the nodes that did not fail.
    pub(super) fn error(&self, operation: Operation, others: Effect, message: &str) -> BackendError {
        let unsure = self.errors.iter().any(|error| error.effect() == Effect::Unknown);
        self.error_of_effect(operation, if unsure { Effect::Unknown } else { others }, message)
    }

    /// All of them in one error of this effect. It is transient unless so many are permanent that no majority is left.
    pub(super) fn error_of_effect(&self, operation: Operation, effect: Effect, message: &str) -> BackendError {
        let kinds =
            |transient| self.errors.iter().map(BackendError::kind).filter(move |kind| kind.is_transient() == transient);
        let hopeless = kinds(false).count() >= self.overlap;
        let kind = if hopeless { kinds(false).next() } else { kinds(true).next() };
        // A timeout is of unknown effect by definition.
        let kind = kind.map(|kind| match (kind, effect) {
            (ErrorKind::Timeout, Effect::None) => ErrorKind::Unreachable,
            (kind, _) => kind,
        });
        let told: Vec<_> = self.errors.iter().map(ToString::to_string).collect();
        let message = if told.is_empty() { message.to_owned() } else { format!("{message} ({})", told.join("; ")) };
        BackendError::new(BACKEND, operation, kind.unwrap_or(ErrorKind::Unavailable), effect, message)
    }
}

pub(super) fn refusal(told: impl Into<String>, remedy: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, told).with_remedy(remedy)
}
