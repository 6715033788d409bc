//! How `leasehold` ends: exit codes, and the failures that lead to them.

use std::fmt;
use std::io;
use std::process::ExitCode;

use leasehold::kit::Skipped;
use leasehold::{BackendError, Error, ErrorKind, Invalid};

/// The code of "busy" unless `--busy-code` says otherwise.
///
/// # Source
/// `EX_TEMPFAIL` of `sysexits.h`.
pub(crate) const BUSY: u8 = 75;

/// How `leasehold` ends. The one table of exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything that was asked for was done.
    Done,
    /// The command's own code.
    Command(u8),
    /// The command was ended by this signal, which `leasehold` did not receive.
    Signalled(i32),
    /// The command was ended by this signal, which `leasehold` received as well.
    SignalledAlike(i32),
    /// The slot of the schedule has run, or runs elsewhere.
    Skipped,
    /// The lock is held, or the wait timed out.
    Busy(u8),
    /// The lease was lost before the command ended.
    Lost,
    /// Nothing was changed: what was named is not there, or the answer to a question was no.
    Unchanged,
    /// The store is unreachable, does not answer in time, or cannot serve.
    Unavailable,
    /// The store refuses this client.
    Denied,
    /// The configuration is invalid.
    Config,
    /// The command line is invalid.
    Usage,
    /// A failure of `leasehold` itself, or of the system underneath.
    Internal,
    /// The command was found and cannot be executed.
    NotExecutable,
    /// There is no such command.
    NotFound,
    /// This signal arrived while waiting for the lock.
    Interrupted(i32),
}

impl Exit {
    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done | Self::Skipped => 0,
            Self::Command(code) | Self::Busy(code) => code,
            Self::Signalled(signal) | Self::SignalledAlike(signal) | Self::Interrupted(signal) => {
                u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128))
            }
            Self::Unchanged => 1,
            Self::Lost => 76,
            Self::Unavailable => 69,
            Self::Denied => 77,
            Self::Config => 78,
            Self::Usage => 64,
            Self::Internal => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
        }
    }

    /// The signal by which this process ends itself: an exit code would not tell a shell that its loop was interrupted.
    pub(crate) fn signal(self) -> Option<i32> {
        if let Self::SignalledAlike(signal) | Self::Interrupted(signal) = self { Some(signal) } else { None }
    }

    /// Whether to print nothing: a user who maps "busy" to success expects it.
    pub(crate) fn goes_without_saying(self) -> bool {
        self == Self::Busy(0)
    }

    /// The outcome in one word, for `--json`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Done | Self::Command(_) | Self::Signalled(_) | Self::SignalledAlike(_) => "ended",
            Self::Skipped => "skipped",
            Self::Busy(_) => "busy",
            Self::Lost => "lost",
            Self::Unchanged => "unchanged",
            Self::Interrupted(_) => "interrupted",
            Self::NotExecutable | Self::NotFound => "not-started",
            Self::Unavailable | Self::Denied | Self::Config | Self::Usage | Self::Internal => "failed",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::Denied => Self::Denied,
            ErrorKind::Config | ErrorKind::Protocol | ErrorKind::Unsupported | ErrorKind::OtherKind => Self::Config,
            ErrorKind::NotHeld | _ => Self::Internal,
        }
    }
}

/// A final failure: the exit code, what happened and what to do about it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// Why the slot of a schedule was skipped, if that is all.
    pub(crate) skipped: Option<Box<Skipped>>,
}

impl Failure {
    /// `message` says what happened and, after a semicolon, what to do.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), skipped: None }
    }

    /// The command line is invalid.
    pub(crate) fn usage(invalid: &Invalid) -> Self {
        Self::new(Exit::Usage, invalid.to_string())
    }

    /// A failure over a connection of its own. The error of the library is about the connect, which is only a part of that.
    pub(crate) fn while_connected(what: &str, error: BackendError) -> Self {
        let Self { exit, message, .. } = error.into();
        let reason = message.split_once(" connect: ").map_or(&*message, |(_, reason)| reason);
        Self::new(exit, format!("{what}: {reason}"))
    }

    /// The system failed to provide something that `leasehold` needs.
    pub(crate) fn system(what: &str, error: impl fmt::Display) -> Self {
        Self::new(Exit::Internal, format!("{what}: {error}; this is a failure of the system or of leasehold"))
    }

    /// A result could not be printed.
    pub(crate) fn unprinted(error: &io::Error) -> Self {
        let message = format!("cannot write to standard output: {error}; check the file that it is redirected to");
        Self::new(Exit::Internal, message)
    }
}

impl From<Skipped> for Failure {
    fn from(skipped: Skipped) -> Self {
        let message = format!("{skipped}; there is nothing to do");
        Self { skipped: Some(Box::new(skipped)), ..Self::new(Exit::Skipped, message) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        error.backend().cloned().map_or_else(|| Self::new(Exit::Unavailable, error.to_string()), Self::from)
    }
}

impl From<Invalid> for Failure {
    /// For a configuration. For a command line, see [`usage`](Self::usage).
    fn from(invalid: Invalid) -> Self {
        Self::new(Exit::Config, invalid.to_string())
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::new(error.kind().into(), error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_manual() {
        let table = [
            (Exit::Done, 0),
            (Exit::Command(7), 7),
            (Exit::Signalled(9), 137),
            (Exit::SignalledAlike(2), 130),
            (Exit::Busy(BUSY), 75),
            (Exit::Unchanged, 1),
            (Exit::Lost, 76),
            (Exit::Unavailable, 69),
            (Exit::Denied, 77),
            (Exit::Config, 78),
            (Exit::Usage, 64),
            (Exit::Internal, 125),
            (Exit::NotExecutable, 126),
            (Exit::NotFound, 127),
            (Exit::Interrupted(2), 130),
        ];
        for (exit, code) in table {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
        assert_eq!(Exit::Signalled(200).code(), 255);
    }

    #[test]
    fn kinds_of_errors_have_their_codes() {
        let table = [
            (ErrorKind::Config, 78),
            (ErrorKind::Denied, 77),
            (ErrorKind::Unreachable, 69),
            (ErrorKind::Timeout, 69),
            (ErrorKind::Unavailable, 69),
            (ErrorKind::Protocol, 78),
            (ErrorKind::Unsupported, 78),
            (ErrorKind::OtherKind, 78),
        ];
        for (kind, code) in table {
            assert_eq!(Exit::from(kind).code(), code, "{kind:?}");
        }
    }
}
