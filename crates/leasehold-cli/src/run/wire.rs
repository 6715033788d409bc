//! The messages between `leasehold`, its guard and the starter of the command: one JSON object per line.

use serde::{Deserialize, Serialize};

use crate::command_end::CommandEnd;

/// From `leasehold` to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// The lease ends at this reading of the host's clock, in nanoseconds. Sent first, and after each renewal.
    Deadline(u64),
    /// Send this signal to the group.
    Signal(i32),
    /// End the group: the lease is lost.
    End,
}

/// From the guard to `leasehold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Event {
    /// The group exists and has this number; the command starts right after.
    Started(i32),
    /// The command cannot be executed; the error number of the system.
    Refused(i32),
    /// The command was stopped, by this signal.
    Stopped(i32),
    /// The command continued.
    Continued,
    /// The command ended, and SIGKILL was sent to the rest of its group. The guard ends when all of the group has ended.
    Ended {
        /// How it ended.
        status: CommandEnd,
        /// Why it ended.
        cause: Cause,
    },
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// By itself, or by a signal that was passed on.
    Itself,
    /// The guard ended it, since the lease was about to end.
    Lease,
}

/// From the guard to the starter, with the command's standard input: the guard is ready, start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Go;

/// From the starter to the guard: the command cannot be executed; the error number of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal(pub(crate) i32);
