//! What happens to the first worker in its first deposit.

use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use serde::{Deserialize, Serialize};

use super::cues::Did;
use crate::shared::failure::Failure;

/// What happens to a worker in its first deposit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mishap {
    /// Nothing.
    #[default]
    None,
    /// The deposit takes until another worker has done this, and at most this long.
    Slow(Did, Duration),
    /// Its process is stopped or killed before this step.
    Strike(Blow, Before),
}

/// What happens to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Blow {
    /// It is stopped, with all its threads, until it is continued.
    Stop,
    /// It is killed.
    Kill,
}

/// A point between two steps: before one that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Before {
    /// It has set the lock, and is about to set the expiry.
    Expiry,
    /// It is about to make sure, for the last time, that it still has the lock.
    Check,
    /// It has made sure, and is about to write.
    Write,
    /// It has seen that the lock is its own, and is about to delete it.
    Delete,
}

impl Mishap {
    /// Strikes if this is the point. Returns once the process is continued, and says whether it was stopped.
    pub(crate) fn strike(&mut self, here: Before) -> Result<bool, Failure> {
        let Self::Strike(blow, before) = *self else { return Ok(false) };
        if before != here {
            return Ok(false);
        }
        *self = Self::None;
        let signal = match blow {
            Blow::Stop => Signal::SIGSTOP,
            Blow::Kill => Signal::SIGKILL,
        };
        // Sent to this thread, which then takes no further step. A signal to the process may reach another thread first.
        raise(signal).map_err(|error| Failure::system("cannot stop the worker", error))?;
        Ok(true)
    }
}
