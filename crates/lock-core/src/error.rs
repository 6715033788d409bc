//! Errors between a client and its store, and whether anything happened.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Limit, LockName, Mode};

/// The kind of an error, for programs to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration cannot work: an invalid URL, a TLS mismatch, a missing directory.
    Config,
    /// The store refuses this client: wrong password, missing permission, read-only file.
    Denied,
    /// There is no connection, or it broke.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// The store is reachable but cannot serve now: disk full, out of memory, still loading.
    Unavailable,
    /// The store's answer violates the protocol.
    Protocol,
    /// The store does not support the request.
    Unsupported,
    /// The name is in use by another kind of lock or value, which was left untouched.
    OtherKind,
    /// The lease that the request is to replace is not held.
    NotHeld,
}

impl ErrorKind {
    /// The kind in a few fixed words, for counting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Denied => "denied",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Protocol => "protocol",
            Self::Unsupported => "unsupported",
            Self::OtherKind => "other kind",
            Self::NotHeld => "not held",
        }
    }

    /// Whether the store reported the error itself, and so is reachable.
    pub fn is_an_answer(self) -> bool {
        !matches!(self, Self::Timeout | Self::Unreachable)
    }

    /// Whether the same request may succeed later without any repair.
    pub fn is_transient(self) -> bool {
        match self {
            Self::Unreachable | Self::Timeout | Self::Unavailable => true,
            Self::Config | Self::Denied | Self::Protocol | Self::Unsupported | Self::OtherKind => false,
            Self::NotHeld => false,
        }
    }
}

/// Whether the failed request took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing happened at the store.
    None,
    /// It was sent and not answered: it may have taken effect, or still may.
    Unknown,
}

/// The operation.
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
    /// Arriving at a latch, or looking at one.
    Latch,
    /// Changing the limit of a semaphore, or looking at it.
    Limit,
}

impl Operation {
    /// The operation in one word, for counting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Fence => "fence",
            Self::Inspect => "inspect",
            Self::Latch => "latch",
            Self::Limit => "limit",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failed request to a store.
///
/// Says what went wrong (`kind`), whether anything may have happened (`effect`), and what to do (`remedy`). Its text
/// never holds a secret. Cloning is cheap.
///
/// Two errors are equal if kind, effect, backend, operation, message, end, remedy and use are. The errors underneath are not compared.
#[derive(Clone, Debug)]
pub struct BackendError(Arc<Detail>);

#[derive(Clone, Debug)]
struct Detail {
    said: Said,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// Everything in an error except its source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    kind: ErrorKind,
    effect: Effect,
    backend: &'static str,
    operation: Operation,
    /// The lock, where the message needs it.
    name: Option<LockName>,
    message: String,
    lasts: Option<Duration>,
    remedy: Option<String>,
    /// As what the name is in use.
    used_as: Option<Mode>,
}

impl BackendError {
    /// Describes a failure. `message` is lower case, without a full stop and without secrets.
    ///
    /// The effect of an [`ErrorKind::Timeout`] is always unknown, whatever is passed: a request that timed out may
    /// still run.
    pub fn new(
        backend: &'static str,
        operation: Operation,
        kind: ErrorKind,
        effect: Effect,
        message: impl Into<String>,
    ) -> Self {
        let effect = if kind == ErrorKind::Timeout { Effect::Unknown } else { effect };
        let message = message.into();
        let (name, lasts, remedy, used_as) = (None, None, None, None);
        let said = Said { kind, effect, backend, operation, name, message, lasts, remedy, used_as };
        Self(Arc::new(Detail { said, source: None }))
    }

    /// Adds how long the failure lasts at most. The text says so after the message.
    #[must_use]
    pub fn with_end(self, lasts: Duration) -> Self {
        self.changed(|detail| detail.said.lasts = Some(lasts))
    }

    /// Adds the lock that the failed request was about. The text names it before the message.
    #[must_use]
    pub fn with_name(self, name: &LockName) -> Self {
        self.changed(|detail| detail.said.name = Some(name.clone()))
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        self.changed(|detail| detail.said.remedy = Some(remedy.into()))
    }

    /// Adds the error underneath. Its text must not hold secrets either.
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.changed(|detail| detail.source = Some(Arc::new(source)))
    }

    /// The refusal of a claim for a name that somebody holds or waits for in a mode that does not [suit](Mode::suits) it.
    /// Nothing happened at the store.
    pub fn in_other_use(backend: &'static str, used: Mode, asked: Mode) -> Self {
        let message = format!("the name is in use as {}, not as {}", usage(used), usage(asked));
        let remedy = if used.name_kind() == asked.name_kind() {
            "use the same limit everywhere, or change it for all with `set_limit`, or `leasehold limit` in a shell"
        } else {
            "choose another name for one of them"
        };
        Self::new(backend, Operation::Acquire, ErrorKind::OtherKind, Effect::None, message)
            .with_remedy(remedy)
            .changed(|detail| detail.said.used_as = Some(used))
    }

    /// The refusal of a claim for more permits than a semaphore has since its limit was changed. It holds nothing, and has no
    /// place in the queue any more.
    pub fn above_limit(backend: &'static str, limit: Limit, count: u32) -> Self {
        let message = format!("the limit of the semaphore is {limit} now, and {count} permits were asked for");
        Self::new(backend, Operation::Acquire, ErrorKind::OtherKind, Effect::None, message)
            .with_remedy("ask for fewer permits, or raise the limit with `set_limit`")
    }

    /// The same failure of another operation.
    #[must_use]
    pub fn of_operation(self, operation: Operation) -> Self {
        self.changed(|detail| detail.said.operation = operation)
    }

    /// Changes this error, and none of its clones.
    fn changed(mut self, change: impl FnOnce(&mut Detail)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.said.kind
    }

    /// Whether the request may have taken effect.
    pub fn effect(&self) -> Effect {
        self.0.said.effect
    }

    /// The operation.
    pub fn operation(&self) -> Operation {
        self.0.said.operation
    }

    /// The text without the time that the failure lasts. It does not change while the failure stays the same, so a
    /// program that reports each failure once can compare it.
    pub fn gist(&self) -> String {
        self.0.said.text(None)
    }

    /// How long the failure lasts at most, if that is known: then the store is there, but grants nothing yet.
    pub fn end(&self) -> Option<Duration> {
        self.0.said.lasts
    }

    /// As what the name is in use, if that is why the request was refused. For a semaphore, the mode has the limit in force.
    pub fn used_as(&self) -> Option<Mode> {
        self.0.said.used_as
    }

    /// The remedy, for users.
    pub fn remedy(&self) -> Option<&str> {
        self.0.said.remedy.as_deref()
    }
}

fn usage(mode: Mode) -> String {
    match mode {
        Mode::Exclusive | Mode::Shared => format!("a {}", mode.name_kind()),
        Mode::Permits { limit, .. } => format!("a {} of limit {limit}", mode.name_kind()),
    }
}

impl PartialEq for BackendError {
    fn eq(&self, other: &Self) -> bool {
        self.0.said == other.0.said
    }
}

impl Eq for BackendError {}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.said.text(self.0.said.lasts))
    }
}

impl Said {
    fn text(&self, lasts: Option<Duration>) -> String {
        let Self { backend, operation, message, .. } = self;
        let name = self.name.as_ref().map(|name| format!(" \"{name}\""));
        let lasts = lasts.map(|lasts| format!(", for {} at most", humantime::format_duration(lasts)));
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        let [name, lasts, remedy] = [name, lasts, remedy].map(Option::unwrap_or_default);
        format!("{backend} {operation}{name}: {message}{lasts}{remedy}")
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
    fn errors_that_say_the_same_are_equal_whatever_is_underneath() {
        let error = |message: &str| {
            BackendError::new("redis", Operation::Acquire, ErrorKind::Denied, Effect::None, message)
                .with_source(std::io::Error::other(message.len().to_string()))
        };
        assert_eq!(error("no right"), error("no right").with_source(std::io::Error::other("another")));
        assert_ne!(error("no right"), error("no left"));
        assert_ne!(error("no right"), error("no right").with_remedy("grant it"));
        let unsure = BackendError::new("redis", Operation::Acquire, ErrorKind::Denied, Effect::Unknown, "no right");
        assert_ne!(error("no right"), unsure);
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
    fn a_clone_can_be_changed_alone() {
        let error = BackendError::new("sqlite", Operation::Acquire, ErrorKind::Denied, Effect::None, "no right")
            .with_source(std::io::Error::other("read-only"));
        let named = error.clone().with_name(&"gpu".parse().unwrap());
        assert_eq!(named.to_string(), "sqlite acquire \"gpu\": no right");
        assert_eq!(error.to_string(), "sqlite acquire: no right");
        assert_eq!(named.source().unwrap().to_string(), "read-only");
    }

    #[test]
    fn a_name_in_other_use_names_both_uses() {
        let semaphore = |limit| Mode::permits(1, limit).unwrap();
        let error = |used, asked| BackendError::in_other_use("redis", used, asked);
        let kinds = error(semaphore(4), Mode::Shared);
        assert_eq!((kinds.kind(), kinds.effect()), (ErrorKind::OtherKind, Effect::None));
        let text = "redis acquire: the name is in use as a semaphore of limit 4, not as a lock; \
            choose another name for one of them";
        assert_eq!(kinds.to_string(), text);
        assert_eq!(
            (kinds.used_as(), error(Mode::Shared, Mode::Exclusive).used_as()),
            (Some(semaphore(4)), Some(Mode::Shared))
        );
        let named = kinds.with_name(&"gpu".parse().unwrap()).to_string();
        assert!(named.starts_with("redis acquire \"gpu\": the name is in use as a semaphore"), "{named}");
        let limits = error(semaphore(4), semaphore(5)).to_string();
        assert!(limits.contains("as a semaphore of limit 4, not as a semaphore of limit 5; use the same"), "{limits}");
        assert!(limits.contains("set_limit"), "{limits}");
        let above = BackendError::above_limit("redis", Limit::new(2).unwrap(), 3).of_operation(Operation::Limit);
        assert_eq!((above.kind(), above.effect()), (ErrorKind::OtherKind, Effect::None));
        let text = "redis limit: the limit of the semaphore is 2 now, and 3 permits were asked for; ";
        assert!(above.to_string().starts_with(text), "{above}");
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
