//! Why a command was not run, or does not count.

use std::io;

use crate::exit::{Exit, Failure};

/// Why a command did not end by itself.
pub(super) enum Stop {
    /// The lease was lost before: the command was ended, or not started.
    Lost(Failure),
    /// Something failed, or there is nothing to do.
    Failed(Failure),
}

impl Stop {
    /// Why a command was not started.
    pub(super) fn before_start(failure: Failure) -> Self {
        if failure.exit == Exit::Lost { Self::Lost(failure) } else { Self::Failed(failure) }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The command could not be guarded.
pub(super) fn unguardable(error: &io::Error) -> Failure {
    let message = format!("cannot find this program's executable, which guards the command: {error}; mount /proc");
    Failure::new(Exit::Internal, message)
}

/// The lease was lost while the command ran.
pub(super) fn lost(reason: &str) -> Failure {
    let message = format!(
        "the lease was lost before the command ended: {reason}; its work may be incomplete, and writes with its fencing \
         token are refused where tokens are checked"
    );
    Failure::new(Exit::Lost, message)
}
