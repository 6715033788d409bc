//! What went wrong between a client and its store, and whether anything happened.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What went wrong, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration cannot work: a bad URL, a TLS mismatch, a directory that is not there.
    Config,
    /// The store refuses this client: wrong password, missing right, read-only file.
    Denied,
    /// No connection, or it broke.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// The store is there but cannot serve now: disk full, out of memory, still loading.
    Unavailable,
    /// The store answered something that the protocol does not allow.
    Protocol,
    /// The store cannot do what was asked.
    Unsupported,
    /// The name is in use by another kind of lock or value, which was left untouched.
    OtherKind,
}

impl ErrorKind {
    /// Whether the store said it itself, and so is there.
    pub fn is_an_answer(self) -> bool {
        !matches!(self, Self::Timeout | Self::Unreachable)
    }

    /// Whether the same request may succeed later without anybody changing anything.
    pub fn is_transient(self) -> bool {
        match self {
            Self::Unreachable | Self::Timeout | Self::Unavailable => true,
            Self::Config | Self::Denied | Self::Protocol | Self::Unsupported | Self::OtherKind => false,
        }
    }
}

/// Whether the failed request took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Surely nothing happened.
    None,
    /// It was sent and not answered: it may have taken effect, or still may.
    Unknown,
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening the store.
    Connect,
    /// Asking for a lease.
    Acquire,
    /// Renewing leases.
    Renew,
    /// Releasing a lease or a place.
    Release,
    /// Checking a lease at the store.
    Fence,
    /// Looking at locks.
    Inspect,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Fence => "fence",
            Self::Inspect => "inspect",
        })
    }
}

/// A failed request to a store.
///
/// Says what went wrong (`kind`), whether anything may have happened (`effect`), and what to do (`remedy`). Its text
/// never holds a secret. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct BackendError(Arc<Detail>);

#[derive(Debug)]
struct Detail {
    kind: ErrorKind,
    effect: Effect,
    backend: &'static str,
    operation: Operation,
    message: String,
    lasts: Option<Duration>,
    remedy: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl BackendError {
    /// Describes a failure. `message` is lower case, without a full stop and without secrets.
    ///
    /// A [`ErrorKind::Timeout`] is always of unknown effect, whatever is passed: a request that timed out still runs.
    pub fn new(
        backend: &'static str,
        operation: Operation,
        kind: ErrorKind,
        effect: Effect,
        message: impl Into<String>,
    ) -> Self {
        let effect = if kind == ErrorKind::Timeout { Effect::Unknown } else { effect };
        let message = message.into();
        Self(Arc::new(Detail { kind, effect, backend, operation, message, lasts: None, remedy: None, source: None }))
    }

    /// Adds how long it lasts at most, which the text says after the message.
    #[must_use]
    pub fn with_end(self, lasts: Duration) -> Self {
        self.changed(|detail| detail.lasts = Some(lasts))
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        self.changed(|detail| detail.remedy = Some(remedy.into()))
    }

    /// Adds the error underneath. Its text must not hold secrets either.
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.changed(|detail| detail.source = Some(Box::new(source)))
    }

    fn changed(self, change: impl FnOnce(&mut Detail)) -> Self {
        let mut shared = self.0;
        if let Some(detail) = Arc::get_mut(&mut shared) {
            change(detail);
        }
        Self(shared)
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the request may have taken effect.
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// What was being done.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// The text without how long it lasts: the same as long as the failure is. A program that reports each failure once
    /// compares this.
    pub fn gist(&self) -> String {
        self.0.text(None)
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&str> {
        self.0.remedy.as_deref()
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text(self.0.lasts))
    }
}

impl Detail {
    fn text(&self, lasts: Option<Duration>) -> String {
        let Self { backend, operation, message, .. } = self;
        let lasts = lasts.map(|lasts| format!(", for {} at most", humantime::format_duration(lasts)));
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        format!("{backend} {operation}: {message}{}{}", lasts.unwrap_or_default(), remedy.unwrap_or_default())
    }
}

impl StdError for BackendError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_not_reached_gave_no_answer() {
        assert!(!ErrorKind::Timeout.is_an_answer() && !ErrorKind::Unreachable.is_an_answer());
        assert!(ErrorKind::Unavailable.is_an_answer() && ErrorKind::Denied.is_an_answer());
    }

    #[test]
    fn a_timeout_is_always_of_unknown_effect() {
        let error =
            BackendError::new("redis", Operation::Acquire, ErrorKind::Timeout, Effect::None, "no answer within 1s");
        assert_eq!(error.effect(), Effect::Unknown);
    }

    #[test]
    fn a_failure_with_an_end_says_the_same_until_then_but_for_the_end() {
        let error = |left| {
            BackendError::new("redlock", Operation::Acquire, ErrorKind::Unavailable, Effect::None, "nodes abstain")
                .with_remedy("wait")
                .with_end(Duration::from_secs(left))
        };
        assert_eq!(error(61).to_string(), "redlock acquire: nodes abstain, for 1m 1s at most; wait");
        assert_eq!(error(61).gist(), "redlock acquire: nodes abstain; wait");
        assert_eq!(error(61).gist(), error(60).gist());
    }

    #[test]
    fn the_text_names_backend_operation_and_remedy_and_keeps_the_source() {
        let error =
            BackendError::new("sqlite", Operation::Connect, ErrorKind::Denied, Effect::None, "the file is read-only")
                .with_source(std::io::Error::other("errno 30"))
                .with_remedy("make it writable");
        assert_eq!(error.to_string(), "sqlite connect: the file is read-only; make it writable");
        assert_eq!(error.gist(), error.to_string());
        assert_eq!(error.source().unwrap().to_string(), "errno 30");
        assert_eq!(error.remedy(), Some("make it writable"));
    }
}
