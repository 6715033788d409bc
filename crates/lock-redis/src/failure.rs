//! A request that failed: its kind, its effect, its message, and whether the connection is still usable.

use std::borrow::Cow;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Limit, Mode, Operation, to_the_millisecond};

use crate::BACKEND;
use crate::cluster::Redirect;
use crate::hash_slot::HashSlot;

/// What to do if no server answers.
pub(crate) const SEE_THERE: &str = "check that the server runs at this address";

/// What to use if the server lacks something.
pub(crate) const MISSING: &str = "use Redis 6.2 or later, or Valkey, without a proxy that hides commands or a configuration that renames \
                       them";

/// How far a request had got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The connection was being made: no verb was sent.
    Connecting,
    /// The request was handed to a connection.
    Asked,
}

/// The request that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) stage: Stage,
    /// The server as it is shown to users.
    pub(crate) server: &'a str,
    /// How long the request might take.
    pub(crate) within: Duration,
}

/// Whether a connection is still usable after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its replies are still in step with its requests.
    Keep,
    /// It is no longer usable.
    Drop,
}

/// A failed request, before it is known which operation and which server it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    pub(crate) effect: Effect,
    message: Cow<'static, str>,
    /// How long it lasts at most, if that is known.
    lasts: Option<Duration>,
    remedy: Option<&'static str>,
    pub(crate) fate: Fate,
    /// The incarnation of the server behind the connection, if the connection broke during the request.
    broke_at: Option<String>,
    /// What the name is in use as, and what was asked for, if these do not suit each other.
    other_use: Option<BackendError>,
    /// What a server of a cluster said instead of running the request.
    redirect: Option<Box<Redirect>>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, effect: Effect, message: impl Into<Cow<'static, str>>) -> Self {
        let (lasts, remedy, fate, broke_at, other_use, redirect) = (None, None, Fate::Keep, None, None, None);
        Self { kind, effect, message: message.into(), lasts, remedy, fate, broke_at, other_use, redirect }
    }

    pub(crate) fn remedy(mut self, remedy: &'static str) -> Self {
        self.remedy = Some(remedy);
        self
    }

    pub(crate) fn dropping(mut self) -> Self {
        self.fate = Fate::Drop;
        self
    }

    /// Adds the incarnation of the server behind the connection, which matters if the connection broke.
    pub(crate) fn at(mut self, incarnation: impl FnOnce() -> String) -> Self {
        self.broke_at = self.is_a_break().then(incarnation);
        self
    }

    /// The request was sent, and no answer came in time.
    pub(crate) fn no_answer(server: &str, within: Duration) -> Self {
        let limit = to_the_millisecond(within);
        Self::new(ErrorKind::Timeout, Effect::Unknown, format!("no answer from {server} within {limit:?}"))
    }

    /// There was no connection in time; nothing was sent.
    pub(crate) fn no_connection(server: &str, within: Duration) -> Self {
        Self { kind: ErrorKind::Unreachable, effect: Effect::None, ..Self::no_answer(server, within) }.remedy(SEE_THERE)
    }

    /// The URL is for a plain connection, but the server speaks TLS.
    pub(crate) fn speaks_tls(server: &str) -> Self {
        Self::new(ErrorKind::Config, Effect::None, format!("the server at {server} speaks TLS on this port"))
            .remedy("use rediss:// instead of redis://, or the server's plain port")
            .dropping()
    }

    /// The URL is for TLS, but the server does not speak it.
    pub(crate) fn speaks_no_tls(server: &str) -> Self {
        Self::new(ErrorKind::Config, Effect::None, format!("the server at {server} does not speak TLS on this port"))
            .remedy("use redis:// instead of rediss://, or the server's TLS port")
            .dropping()
    }

    /// A server answered after another one had become the primary. Only that one knows whether the answer is worth anything.
    pub(crate) fn was_replaced(server: &str) -> Self {
        let message = format!("the connection to {server} broke: another server has become the primary");
        Self::new(ErrorKind::Unreachable, Effect::Unknown, message).dropping()
    }

    /// Another server became the primary while the connection was made.
    pub(crate) fn moved() -> Self {
        Self::new(ErrorKind::Unavailable, Effect::None, "another server has become the primary").dropping()
    }

    /// The task that was to make the connection ended with its runtime.
    #[cfg(feature = "async")]
    pub(crate) fn runtime_gone() -> Self {
        Self::new(ErrorKind::Unreachable, Effect::None, "the runtime that was connecting has ended")
    }

    /// The pool and the URL that came with it lead to different databases.
    #[cfg(any(feature = "deadpool", feature = "r2d2"))]
    pub(crate) fn elsewhere(server: &str) -> Self {
        Self::new(
            ErrorKind::Config,
            Effect::None,
            format!("the pool leads to a different server or database from {server}"),
        )
        .remedy("give the URL of the pool's own server, with the number of its database")
    }

    /// The server may have forgotten leases, and grants no free lock for so long.
    pub(crate) fn dwells(left: Option<Duration>) -> Self {
        let message = "the server was promoted, was restarted or lost its data, so it may have forgotten locks that are still held; \
                       it grants none";
        // An upper bound that changes once a second.
        let lasts = left.map(|left| Duration::from_secs(left.as_secs() + 1));
        let failure = Self::new(ErrorKind::Unavailable, Effect::None, message);
        Self { lasts, ..failure }
            .remedy("wait; only if this deployment has never granted a lock, run `leasehold redis init` with the URL of this client")
    }

    /// The server's answer is none that our scripts give.
    pub(crate) fn strange_answer() -> Self {
        Self::new(ErrorKind::Protocol, Effect::Unknown, "the server gave an unexpected answer")
    }

    /// The server has granted or renewed a lease, and too few replicas have acknowledged that in time.
    pub(crate) fn too_few_replicas(acknowledged: u64, wanted: u16, connected: u32) -> Self {
        let mut message = format!("{acknowledged} of {wanted} replicas acknowledged it in time");
        if connected < u32::from(wanted) {
            message = format!("{message}; the server had {connected} when this client connected");
        }
        Self::new(ErrorKind::Unavailable, Effect::Unknown, message)
            .remedy("check that enough replicas run and follow this server, or lower replicas in the URL")
    }

    /// The server has granted or renewed a lease, and has not written that to its disk in time.
    pub(crate) fn not_on_disk() -> Self {
        let message = "the server had not written it to disk in time";
        Self::new(ErrorKind::Unavailable, Effect::Unknown, message)
            .remedy("set appendfsync to always at the server, or give each request more time: op_timeout=3s in the URL, and a ttl of 9 s or more")
    }

    /// The server does not report a field that has to be known.
    pub(crate) fn tells_no(field: &str, server: &str) -> Self {
        let message = format!("{server} reports no {field} in its INFO");
        Self::new(ErrorKind::Unsupported, Effect::None, message).remedy(MISSING)
    }

    /// The keys of a lock are on their way, or the servers do not agree yet on where they are.
    pub(crate) fn moving(hash_slot: HashSlot) -> Self {
        let message = format!("the hash slot {hash_slot} is moving to another primary");
        Self::new(ErrorKind::Unavailable, Effect::None, message).remedy("wait until it has moved")
    }

    pub(crate) fn other_kind() -> Self {
        Self::new(ErrorKind::OtherKind, Effect::None, "the key has a value of another type, which was left untouched")
            .remedy("use another name, or a prefix")
    }

    /// The name is in use in a mode that does not suit the one that was asked for.
    pub(crate) fn in_other_use(used: Mode, asked: Mode) -> Self {
        Self::told(BackendError::in_other_use(BACKEND, used, asked))
    }

    /// More permits were asked for than there are by now.
    pub(crate) fn above_limit(limit: Limit, count: u32) -> Self {
        Self::told(BackendError::above_limit(BACKEND, limit, count))
    }

    fn told(error: BackendError) -> Self {
        Self { other_use: Some(error), ..Self::other_kind() }
    }

    pub(crate) fn unsupported(message: &'static str) -> Self {
        Self::new(ErrorKind::Unsupported, Effect::None, message)
    }

    /// The same, after an earlier part of the request had been answered.
    pub(crate) fn after_a_part(mut self) -> Self {
        self.effect = Effect::Unknown;
        self
    }

    /// The same for a node of a quorum, with its address unless the message already names it.
    pub(crate) fn of_node(mut self, address: &str) -> Self {
        if !self.message.contains(address) {
            self.message = format!("{address}: {}", self.message).into();
        }
        self
    }

    /// A server of a cluster does not serve the request, and may say which one does.
    pub(crate) fn redirected(self, redirect: Option<Redirect>) -> Self {
        Self { redirect: redirect.map(Box::new), ..self }
    }

    /// What a server of a cluster said instead of running the request.
    pub(crate) fn redirect(&self) -> Option<&Redirect> {
        self.redirect.as_deref()
    }

    /// Whether nothing happened, because the server is not there or no primary. Another one may be the primary by now.
    pub(crate) fn is_elsewhere(&self) -> bool {
        let is_no_primary = self.kind == ErrorKind::Unavailable && self.fate == Fate::Drop;
        self.effect == Effect::None && (self.kind == ErrorKind::Unreachable || is_no_primary)
    }

    /// What failed, without the remedy.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether connecting may succeed a moment later, or at another server.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.kind, ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Unavailable)
    }

    /// Whether a server fails like that if another one has taken its place. One that may have forgotten leases does not: it knows
    /// that it is new.
    pub(crate) fn may_be_of_an_old_primary(&self) -> bool {
        self.may_pass() && self.lasts.is_none()
    }

    /// Whether the connection broke during the request, so that its outcome is unknown.
    pub(crate) fn is_a_break(&self) -> bool {
        self.kind == ErrorKind::Unreachable && self.effect == Effect::Unknown
    }

    /// The incarnation of the server behind the connection, if it broke during the request. For connections that were
    /// passed in it is unknown, and they are assumed to lead to the same.
    pub(crate) fn broke_at(&self) -> Option<&str> {
        self.broke_at.as_deref()
    }

    /// Whether the server reported it, and so is alive.
    pub(crate) fn is_an_answer(&self) -> bool {
        self.kind.is_an_answer()
    }

    pub(crate) fn into_error(self, operation: Operation) -> BackendError {
        if let Some(error) = self.other_use {
            return error.of_operation(operation);
        }
        let error = BackendError::new(BACKEND, operation, self.kind, self.effect, self.message);
        let error = self.lasts.into_iter().fold(error, BackendError::with_end);
        match self.remedy {
            Some(remedy) => error.with_remedy(remedy),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_to_the_millisecond() {
        for (micros, told) in [(999_996, "1s"), (300_000, "300ms"), (1_500_400, "1.5s"), (0, "1ms")] {
            let failure = Failure::no_answer("redis://127.0.0.1:7391", Duration::from_micros(micros));
            let text = failure.into_error(Operation::Acquire).to_string();
            assert_eq!(text, format!("redis acquire: no answer from redis://127.0.0.1:7391 within {told}"));
        }
    }
}
