//! What all locks of the scene have in common.

use leasehold::FencingToken;

use super::mishap::Mishap;
use crate::shared::failure::Failure;
use crate::shared::raw::Raw;

/// A lock as one worker sees it, of any kind.
pub(crate) trait Lock: Send {
    /// Tries to acquire it, and says whether the worker may enter.
    fn try_enter(&mut self, raw: &mut dyn Raw, attempt: Attempt, mishap: &mut Mishap) -> Result<bool, Failure>;

    /// Releases it.
    fn leave(&mut self, raw: &mut dyn Raw, mishap: &mut Mishap) -> Result<Left, Failure>;

    /// Whether the worker still holds it, as far as it can tell.
    fn is_good(&self) -> bool {
        true
    }

    /// The fencing token, where there is one.
    fn token(&self) -> Option<FencingToken> {
        None
    }

    /// Comes to a point before the last check that the lock is still held.
    fn come_to_check(&mut self, _: &mut Mishap) -> Result<(), Failure> {
        Ok(())
    }
}

/// Which attempt at entering it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The lock may be free.
    First,
    /// It was not: the lock may wait in the way that is its own.
    Again,
}

/// The outcome of leaving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// How many times the deleted lock belonged to another worker.
    pub(crate) wrong_deletes: u64,
    /// How many times the renewed lock belonged to another worker.
    pub(crate) wrong_renewals: u64,
}
