//! Redis for plain threads, over plain sockets.

mod handed_in;
mod inspect;
mod source;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::latch::{Act, Request, Seen, Watching};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, BlockingInspect, BlockingLatch, BlockingLimit, Capabilities, Claim,
    Durability, EventSink, Fenced, Invalid, Isolation, Lease, Location, LockName, Operation, Prefix, Queueing,
    ReleaseRequest, Released, Renewed,
};

use crate::acknowledged::Acknowledged;
use crate::channel::Channel;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, explain, has_forgotten_the_script};
use crate::end_dwell::EndDwell;
use crate::failure::Failure;
use crate::greeting::{Role, warnings};
use crate::renewal::Renewal;
use crate::server_info::ServerInfo;
use crate::span::Span;
use crate::stack::{Asks, Heard, Stack};
use crate::target::Target;
use crate::wire::{Call, LEASES_PER_SCRIPT, Line, Question, Retry, Wire, load};
use crate::{ABILITIES, BACKEND, MODES, RedisConfig};

use self::source::Source;

#[cfg(feature = "r2d2")]
pub use self::handed_in::{Pool, SocketTimeouts};

/// A Redis, used from threads over a few connections of its own, or through the user's pool.
///
/// A thread has exclusive use of a connection while it waits for an answer. There are at most eight; if all are in use,
/// the requests of several threads are sent together over the next one that is free. A connection that is not needed
/// for a minute is closed. A pool that is passed in is shared: the keeper's renewals go through it, too; every grant also reads the
/// server's clock, since such a pool does not show when it has reconnected; and its connections keep the socket
/// timeouts of their last use here. Its waiters poll; they are notified if the pool comes with a URL (`Redis::pooled`).
pub struct Redis {
    wire: Wire,
    source: Source,
    warnings: Vec<String>,
}

impl Redis {
    /// Connects to the Redis of `config`: the first contact is made now, and takes about a second at most.
    ///
    /// The system's lookup of the host name may take longer.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the client, or is not a Redis as the URL describes. Nothing was
    /// changed, except that the token counter may have been raised.
    pub fn connect(config: &RedisConfig) -> Result<Self, BackendError> {
        let (stack, warnings) = Self::stack(config, Target::of(config))?;
        let redis = Self::own(stack).prefixed(config.own_prefix());
        Ok(Self { wire: redis.wire.with_replicas(config.replicas()), warnings, ..redis })
    }

    fn stack(config: &RedisConfig, target: Result<Target, Failure>) -> Result<(Stack, Vec<String>), BackendError> {
        let failed = |failure: Failure| failure.into_error(Operation::Connect);
        let target = target.map_err(failed)?;
        let stack = Stack::new(target, Role::of(config));
        let server_info = stack.greet(Span::from_now(CONNECT_WITHIN));
        let explained = |failure| match stack.target().client() {
            Some(client) => explain(client, failure),
            None => failure,
        };
        let server_info = server_info.map_err(|failure| failed(explained(failure)))?;
        let warnings = warnings(config, &server_info);
        Ok((stack, warnings))
    }

    /// The same Redis with `PREFIX:` before the names of locks.
    ///
    /// # Errors
    /// `Invalid` for a prefix that is empty, too long, reserved, or contains a control character.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, Invalid> {
        Ok(self.prefixed(&prefix.parse()?))
    }

    fn prefixed(self, prefix: &Prefix) -> Self {
        Self { wire: self.wire.with_prefix(prefix), ..self }
    }

    fn own(stack: Stack) -> Self {
        let channel = Channel::new();
        let stack = stack.with_listener(channel.clone());
        Self { wire: Wire::own(stack.target(), channel), source: Source::Own(Box::new(stack)), warnings: Vec::new() }
    }

    /// A server as a node of a quorum. Nothing is connected yet.
    pub(crate) fn node(target: Target, prefix: &Prefix) -> Self {
        Self::own(Stack::new(target, Role::Node)).prefixed(prefix)
    }

    /// Somebody waits, and wants to be notified when to ask again.
    pub(crate) fn listen_in_time(&self) {
        if let Some(stack) = self.source.stack() {
            stack.listen_in_time();
        }
    }

    /// The same Redis over connections of its own, or over what was passed in.
    pub(crate) fn another(&self) -> Self {
        Self { wire: self.wire.without_inbox(), source: self.source.another(), warnings: Vec::new() }
    }

    /// Free locks are granted from now on. Returns for how long they would not have been.
    pub(crate) fn end_dwell(&self, within: Duration) -> Result<Option<Duration>, BackendError> {
        self.ask(EndDwell, within)
    }

    fn ask<Q: Question>(&self, question: Q, within: Duration) -> Result<Q::Answer, BackendError> {
        let answer = self.answer(&question, Span::from_now(within));
        answer.map_err(|failure| failure.into_error(question.operation()))
    }

    /// Asks within a time limit that may be shared with other questions. An idempotent question is repeated once over
    /// another connection if the first one broke.
    pub(crate) fn answer<Q: Question>(&self, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        match (self.answer_once(question, span, None), question.retry()) {
            (Err(failure), Retry::Once) if failure.is_a_break() => {
                self.answer_once(question, span, Some(&failure)).map_err(Failure::after_a_part)
            }
            (outcome, Retry::Once | Retry::Never) => outcome,
        }
    }

    fn answer_once<Q: Question>(
        &self,
        question: &Q,
        span: Span,
        first: Option<&Failure>,
    ) -> Result<Q::Answer, Failure> {
        let Heard { reply, server_info } = self.evaluate(question, span, first)?;
        let broke = |error| classify(self.wire.asked(span.within), &error).at(|| server_info.incarnation());
        question.read(Line { wire: &self.wire, server_info: &server_info, first }, reply.map_err(broke)?)
    }

    /// Sends a question; if the server has forgotten its script, loads that and sends it again.
    fn evaluate<Q: Question>(&self, question: &Q, span: Span, first: Option<&Failure>) -> Result<Heard, Failure> {
        let call = |server_info: &ServerInfo| question.call(Line { wire: &self.wire, server_info, first });
        let ask = |asks: &Asks<'_>| self.source.ask(question.operation(), asks, span);
        let heard = ask(&call)?;
        if !heard.reply.as_ref().is_err_and(has_forgotten_the_script) {
            return Ok(heard);
        }
        let Some(script) = call(&heard.server_info)?.script else { return Ok(heard) };
        let loaded = ask(&|_| Ok(Call::plain(load(script))))?;
        if loaded.reply.is_err() {
            return Ok(loaded);
        }
        ask(&call)
    }
}

impl Backend for Redis {
    fn capabilities(&self) -> Capabilities {
        let redis = Capabilities::new(BACKEND, self.wire.waiting(), Durability::ClockFloor);
        let redis = redis.with_shared_counter().with_modes(MODES).with_abilities(ABILITIES);
        match &self.source {
            Source::Own(_) => redis.with_isolation(Isolation::Isolated),
            #[cfg(feature = "r2d2")]
            Source::Pool(_) => redis,
            #[cfg(feature = "r2d2")]
            Source::PoolAndStack(..) => redis.with_isolation(Isolation::Isolated),
        }
    }

    fn listen(&self, sink: EventSink) {
        self.wire.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.wire.locate(name)
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl BlockingBackend for Redis {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        Arc::new(self.another())
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let span = Span::from_now(within);
        let failed = |failure: Failure| failure.into_error(Operation::Acquire);
        if let (Some(stack), Queueing::Wanted) = (self.source.stack(), claim.queueing)
            && stack.hears_nothing()
        {
            // A claim that takes a place should be notified of its turn. A claim that takes none needs no notification.
            let at_once = Claim { queueing: Queueing::Unwanted, ..claim.clone() };
            let answer = self.answer(&Acknowledged::new(&at_once, &self.wire, span), span).map_err(failed)?;
            if !matches!(answer, Answer::Busy { .. }) {
                return Ok(answer);
            }
            stack.listen(span);
        }
        self.answer(&Acknowledged::new(claim, &self.wire, span), span).map_err(failed)
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let span = Span::from_now(within);
        let mut answers = Vec::with_capacity(leases.len());
        for batch in leases.chunks(LEASES_PER_SCRIPT) {
            match self.answer(&Acknowledged::new(Renewal(batch), &self.wire, span), span) {
                Ok(renewed) => answers.extend(renewed),
                Err(failure) if answers.is_empty() => return Err(failure.into_error(Operation::Renew)),
                Err(failure) => return Err(failure.after_a_part().into_error(Operation::Renew)),
            }
        }
        Ok(answers)
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(request, within)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(lease, within)
    }

    fn inspect(&self) -> Option<&dyn BlockingInspect> {
        Some(self)
    }

    fn latch(&self) -> Result<&dyn BlockingLatch, BackendError> {
        Ok(self)
    }

    fn limit(&self) -> Result<&dyn BlockingLimit, BackendError> {
        Ok(self)
    }
}

impl BlockingLatch for Redis {
    fn ask(&self, request: &Request, within: Duration) -> Result<Seen, BackendError> {
        let span = Span::from_now(within);
        let failed = |failure: Failure| failure.into_error(Operation::Latch);
        if let (Some(stack), Act::Look { watching: Watching::Wanted }) = (self.source.stack(), &request.act)
            && stack.hears_nothing()
        {
            // A wait should be notified of its end. One that ends at once needs no notification.
            let seen = self.answer(&request, span).map_err(failed)?;
            if seen.state.is_some_and(|state| state.is_complete()) {
                return Ok(seen);
            }
            stack.listen(span);
        }
        self.answer(&request, span).map_err(failed)
    }
}

impl BlockingLimit for Redis {
    fn ask(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        Self::ask(self, request, within)
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.source.stack().map(|stack| stack.target().shown());
        let server = server.unwrap_or_else(|| "(handed in)".to_owned());
        f.debug_struct("Redis").field("server", &server).field("prefix", &self.wire.prefix.as_deref()).finish()
    }
}
