//! Redis for plain threads, over plain sockets.

mod backend;
mod handed_in;
pub(crate) mod listener;
mod listening;
mod listing;
pub(crate) mod slots;
pub(crate) mod socket;
mod source;
pub(crate) mod stack;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{BackendError, Invalid, Operation, Prefix};

use crate::RedisConfig;
use crate::channel::Channel;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, explain, has_forgotten_the_script};
use crate::failure::Failure;
use crate::requests::acknowledged::disk_check;
use crate::runs::was_cut_short;
use crate::server::greeting::{Role, warnings};
use crate::server::server_info::ServerInfo;
use crate::server::verification;
use crate::span::Span;
use crate::target::Target;
use crate::wire::{Call, Line, Question, Retry, Wire, load};
use stack::{Asks, Heard, Stack};

pub(crate) use self::listening::Listening;
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
///
/// A signal that a handler takes while a thread waits for an answer counts as a broken connection, also with `SA_RESTART`: the system
/// does not resume reads that have a time limit, and the client library does not repeat them. Renewals and releases are sent
/// again, and waiters ask again, but `try_acquire` fails with an unknown outcome. So block signals in threads that use locks, and
/// handle them in another one.
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
        redis.check_disk(config).map_err(|failure| failure.into_error(Operation::Connect))?;
        Ok(Self { wire: redis.wire.with_copies(config.copies()), warnings, ..redis })
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

    /// A primary of a cluster. Nothing is connected yet.
    pub(crate) fn shard(target: Target, config: &RedisConfig, channel: Option<Arc<Channel>>) -> Self {
        let wire = Wire::own(&target, channel.clone()).clustered().with_prefix(config.own_prefix());
        let source = Source::Own(Box::new(Stack::new(target, Role::of(config)).with_listener(channel)));
        Self { wire: wire.with_copies(config.copies()), source, warnings: Vec::new() }
    }

    /// A hash slot has left this primary.
    pub(crate) fn forget_verified(&self) {
        self.source.stack().into_iter().for_each(Stack::forget_verified);
    }

    /// Connects, if there is no connection yet, and returns warnings about the server.
    pub(crate) fn greet(&self, config: &RedisConfig) -> Result<Vec<String>, Failure> {
        let Some(stack) = self.source.stack() else { return Ok(Vec::new()) };
        let warnings = warnings(config, &*stack.greet(Span::from_now(CONNECT_WITHIN))?);
        self.check_disk(config)?;
        Ok(warnings)
    }

    /// Somebody waits or holds, and wants to be notified when to ask again.
    pub(crate) fn listen_in_time(&self) {
        if let Some(stack) = self.source.stack() {
            stack.listen_in_time();
        }
    }

    /// The same Redis over connections of its own, or over what was passed in.
    pub(crate) fn another(&self) -> Self {
        Self { wire: self.wire.without_inbox(), source: self.source.another(), warnings: Vec::new() }
    }

    /// How its waiters are notified.
    pub(crate) fn listening(&self, span: Span) -> Listening<'_> {
        Listening { stack: self.source.stack(), span }
    }

    /// Refuses a server that cannot wait for its disk, if it has to.
    fn check_disk(&self, config: &RedisConfig) -> Result<(), Failure> {
        let check = disk_check(config.copies());
        check.map_or(Ok(()), |check| self.answer(&check, Span::from_now(CONNECT_WITHIN)))
    }

    pub(crate) fn ask<Q: Question>(&self, question: Q, within: Duration) -> Result<Q::Answer, BackendError> {
        let answer = self.answer(&question, Span::from_now(within));
        answer.map_err(|failure| failure.into_error(question.operation()))
    }

    /// Asks within a time limit that may be shared with other questions. An idempotent question is repeated once over
    /// another connection if the first one broke.
    pub(crate) fn answer<Q: Question>(&self, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        self.repeat(question, span, self.answer_once(question, span, None))
    }

    /// Asks each of these for itself, in one write if a connection is free. None of them depends on a counter.
    pub(crate) fn answer_each<Q: Question>(&self, questions: &[Q], span: Span) -> Vec<Result<Q::Answer, Failure>> {
        let calls = |server_info: &ServerInfo| {
            let line = Line { wire: &self.wire, server_info, first: None };
            questions.iter().map(|question| question.call(line)).collect()
        };
        let heard = match self.source.stack().filter(|_| questions.len() > 1) {
            Some(stack) => stack.ask_each(&calls, span),
            None => None,
        };
        match heard {
            None => questions.iter().map(|question| self.answer(question, span)).collect(),
            Some(Err(failure)) => questions.iter().map(|_| Err(failure.clone())).collect(),
            Some(Ok(heard)) => {
                let both = questions.iter().zip(heard);
                both.map(|(question, heard)| match heard.reply {
                    Err(error) if has_forgotten_the_script(&error) => self.answer(question, span),
                    _ => self.repeat(question, span, self.read(question, span, heard, None)),
                })
                .collect()
            }
        }
    }

    /// Asks once more if that is safe and the connection broke.
    fn repeat<Q: Question>(
        &self,
        question: &Q,
        span: Span,
        first: Result<Q::Answer, Failure>,
    ) -> Result<Q::Answer, Failure> {
        match (first, question.retry()) {
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
        self.read(question, span, self.evaluate(question, span, first)?, first)
    }

    fn read<Q: Question>(
        &self,
        question: &Q,
        span: Span,
        Heard { reply, server_info }: Heard,
        first: Option<&Failure>,
    ) -> Result<Q::Answer, Failure> {
        let broke = |error| classify(self.wire.asked(span.within), &error).at(|| server_info.incarnation());
        let line = Line { wire: &self.wire, server_info: &server_info, first };
        let answer = reply.map_err(broke).and_then(|reply| question.read(line, reply));
        if let Some(stack) = self.source.stack() {
            stack.target().check(answer.as_ref().err());
        }
        answer
    }

    /// Sends a question, and sends it again while its script ends before it is done.
    fn evaluate<Q: Question>(&self, question: &Q, span: Span, first: Option<&Failure>) -> Result<Heard, Failure> {
        let mut heard = self.evaluate_once(question, span, first)?;
        while heard.reply.as_ref().is_err_and(was_cut_short) {
            heard = self.evaluate_once(question, span, first).map_err(Failure::after_a_part)?;
        }
        Ok(heard)
    }

    /// Sends a question; if the server has forgotten its script, loads that and sends it again in full.
    fn evaluate_once<Q: Question>(&self, question: &Q, span: Span, first: Option<&Failure>) -> Result<Heard, Failure> {
        let call = |server_info: &ServerInfo| question.call(Line { wire: &self.wire, server_info, first });
        let ask = |asks: &Asks<'_>| self.source.ask(question.operation(), asks, span);
        let heard = verified(&call, &ask)?;
        if !heard.reply.as_ref().is_err_and(has_forgotten_the_script) {
            return Ok(heard);
        }
        let Some(script) = call(&heard.server_info)?.script else { return Ok(heard) };
        // For later requests. This one does not depend on it: the script may be forgotten again, and without the right to load it
        // still runs.
        ask(&|_| Ok(Call::plain(load(script))))?;
        verified(&|server_info: &ServerInfo| Ok(call(server_info)?.in_full()), &ask)
    }
}

/// Asks, and before that has the counter of the hash slot verified at the server that answers, if it depends on that.
fn verified(call: &Asks<'_>, ask: &dyn Fn(&Asks<'_>) -> Result<Heard, Failure>) -> Result<Heard, Failure> {
    let unverified = Cell::new(None);
    let next = |server_info: &ServerInfo| {
        let call = call(server_info)?;
        unverified.set(server_info.unverified(call.slot));
        Ok(unverified.get().map_or(call, |slot| verification::of_slot(server_info, slot)))
    };
    loop {
        let heard = ask(&next)?;
        match (unverified.get(), heard.reply) {
            (Some(slot), Ok(reply)) => heard.server_info.verified(slot, verification::longest(reply)),
            (_, reply) => {
                heard.server_info.judge(&reply);
                return Ok(Heard { reply, ..heard });
            }
        }
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.source.stack().map(|stack| stack.target().shown());
        let server = server.unwrap_or_else(|| "(handed in)".to_owned());
        f.debug_struct("Redis").field("server", &server).field("prefix", &self.wire.prefix.as_deref()).finish()
    }
}
