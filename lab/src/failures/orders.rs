//! The language between a scene and its holders, which are processes of their own: one JSON value a line.

use std::time::{Duration, SystemTime};

use leasehold::FencingToken;
use serde::{Deserialize, Serialize};

/// The subcommand of a holder's process.
pub(super) const ROLE: &str = "holder";

/// The first line: how the holder gets its lock, and which key it works on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The store of the locks, for `leasehold`.
    pub(super) locks: String,
    pub(super) lock: String,
    pub(super) ttl_ms: u64,
    /// The server of the resource: a Redis, or the PostgreSQL of the locks.
    pub(super) resource: String,
    pub(super) key: String,
}

/// What a holder does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Look at the wall clock.
    Date,
    /// Ask the client what it warns of.
    Warnings,
    /// Acquire the lock, and wait for it for a minute at most.
    Acquire,
    /// Acquire the lock if it is free.
    TryAcquire,
    /// Ask the guard, without a request.
    Check,
    /// Ask the guard how long the lock is valid without a renewal.
    Remaining,
    /// Wait until the guard says that the lock is lost.
    Lose,
    Release,
    /// Raise the resource's fence to the guard's token.
    Raise,
    /// Read the resource, without a check.
    Read,
    /// Write to the resource with the guard's token.
    Write(String),
    /// Begin a transaction that is fenced by the lock.
    Begin,
    /// Send statements to the database.
    Ask(String),
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The lock, with this token.
    Acquired(FencingToken),
    Busy,
    Date(SystemTime),
    Warnings(String),
    /// The guard says that the lock is held.
    Valid,
    /// The guard says that the lock is lost, and why.
    Lost(String),
    Remaining(Duration),
    Done,
    /// The value of the resource, or the reply of the database.
    Value(Option<String>),
    /// The resource has seen a later token.
    Refused {
        token: FencingToken,
        highest: FencingToken,
    },
    /// The store or the resource did not do it.
    Failed(String),
}

// The answers that orders expect.

pub(super) fn granted(answer: Answer) -> Result<FencingToken, Answer> {
    if let Answer::Acquired(token) = answer { Ok(token) } else { Err(answer) }
}

/// Why it failed, in the words of the error.
pub(super) fn failed_as(words: &'static str) -> impl FnOnce(Answer) -> Result<(), Answer> {
    move |answer| {
        let expected = matches!(&answer, Answer::Failed(why) if why.contains(words));
        if expected { Ok(()) } else { Err(answer) }
    }
}

pub(super) fn lost(answer: Answer) -> Result<String, Answer> {
    if let Answer::Lost(reason) = answer { Ok(reason) } else { Err(answer) }
}

pub(super) fn value(answer: Answer) -> Result<String, Answer> {
    if let Answer::Value(value) = answer { Ok(value.unwrap_or_default()) } else { Err(answer) }
}

pub(super) fn done(answer: Answer) -> Result<(), Answer> {
    if let Answer::Done = answer { Ok(()) } else { Err(answer) }
}

/// A reason without its details, such as the last error, for which a picture has no room.
pub(super) fn brief(reason: &str) -> &str {
    reason.split([':', '(']).next().unwrap_or(reason).trim_end()
}
