//! Lines of JSON that are not the outcome of a run.

use serde::Serialize;

use crate::exit::Failure;

/// A store error during a wait that continues.
#[derive(Debug, Serialize)]
pub(super) struct Waiting<'a> {
    pub(super) outcome: &'static str,
    pub(super) name: &'a str,
    pub(super) message: &'a str,
}

/// A failure without a run.
#[derive(Debug, Serialize)]
pub(super) struct Failed<'a> {
    pub(super) outcome: &'static str,
    pub(super) exit: u8,
    pub(super) message: &'a str,
}

impl<'a> From<&'a Failure> for Failed<'a> {
    fn from(failure: &'a Failure) -> Self {
        Self { outcome: failure.exit.word(), exit: failure.exit.code(), message: &failure.message }
    }
}
