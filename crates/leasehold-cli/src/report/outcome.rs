//! How a run ended, as one line of JSON.

use serde::Serialize;

use crate::command_end::CommandEnd;
use crate::schedule::Schedule;

/// The outcome of `leasehold run` or `leasehold elect`, for `--json` and `--report`, one line.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// `ended`, `skipped`, `busy`, `lost`, `interrupted`, `not-started` or `failed`.
    pub(crate) outcome: &'static str,
    /// The exit code of `leasehold`.
    pub(crate) exit: u8,
    /// The lock.
    pub(crate) name: String,
    /// The store, without user and password; `null` if it was not chosen.
    pub(crate) store: Option<String>,
    /// The fencing token, if the lock was acquired.
    pub(crate) token: Option<u64>,
    /// The slot of the semaphore, if one was acquired.
    pub(crate) slot: Option<u32>,
    /// How the command ended, if it did.
    pub(crate) command: Option<CommandEnd>,
    /// Milliseconds until the lock was acquired or the wait failed.
    pub(crate) waited_ms: u64,
    /// Milliseconds from then until it was released.
    pub(crate) held_ms: Option<u64>,
    #[serde(flatten)]
    pub(crate) schedule: Schedule,
    /// The message: what happened and what to do.
    pub(crate) message: Option<String>,
    /// Warnings.
    pub(crate) warnings: Vec<String>,
}
