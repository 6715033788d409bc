//! How the laboratory fails: exit codes, which are those of the command, and messages.

use std::fmt;
use std::io;
use std::process::ExitCode;

use leasehold::{AcquireError, BackendError, ConnectError, Error, ErrorKind, Invalid};

/// How the laboratory ends if it does not succeed.
///
/// # Source
/// `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A promise of leasehold was broken, whatever course the scene took.
    Broken = 1,
    /// The command line is invalid.
    Usage = 64,
    /// The store is unreachable, does not answer in time, or cannot serve.
    Unavailable = 69,
    /// The store refuses this client.
    Denied = 77,
    /// The store cannot be used.
    Config = 78,
    /// A failure of the laboratory itself, or of the system underneath.
    Internal = 125,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
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

/// Why a scene was not played to its end.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    /// `message` says what happened and, after a semicolon, what to do.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// The system failed to provide something that the laboratory needs.
    pub(crate) fn system(what: &str, error: impl fmt::Display) -> Self {
        Self::new(Exit::Internal, format!("{what}: {error}; this is a failure of the system or of the laboratory"))
    }

    /// A result could not be printed.
    pub(crate) fn unprinted(error: &io::Error) -> Self {
        let message = format!("cannot write to standard output: {error}; check the file that it is redirected to");
        Self::new(Exit::Internal, message)
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::new(Exit::Config, invalid.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Error::from(error).into()
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Error::from(error).into()
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        Error::from(error).into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = if let Error::Acquire(AcquireError::Invalid(_)) = &error {
            Exit::Config
        } else {
            error.backend().map_or(Exit::Unavailable, |error| error.kind().into())
        };
        let advice = if exit == Exit::Unavailable { "; check that the store still answers" } else { "" };
        Self::new(exit, format!("{error}{advice}"))
    }
}
