//! Without the feature `tracing`: nothing is emitted.

use lock_core::station::Outcome;
use lock_core::{FencingToken, LockName};

use crate::observer::SharedObserver;

pub(crate) fn observer(_backend: &'static str) -> Option<SharedObserver> {
    None
}

/// One call that asks for a lock.
#[derive(Clone)]
pub(crate) struct Acquisition;

impl Acquisition {
    pub(crate) fn begin(_lock: &LockName, _backend: &'static str) -> Self {
        Self
    }

    pub(crate) fn run<T>(&self, inside: impl FnOnce() -> T) -> T {
        inside()
    }

    pub(crate) fn succeeded(&self, _token: FencingToken) {}

    pub(crate) fn failed(&self, _outcome: &Outcome) {}
}
