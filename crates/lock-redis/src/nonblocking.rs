//! Redis for tokio.

mod backend;
pub(crate) mod batcher;
mod handed_in;
pub(crate) mod link;
mod listing;
pub(crate) mod live;
mod part;
pub(crate) mod silence;
mod source;
pub(crate) mod writes;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, FutureExt, TryFutureExt, ready};
use lock_core::{BackendError, EventSink, Invalid, Operation};
use redis::{RedisResult, Value};
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use crate::RedisConfig;
use crate::channel::Channel;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, explain};
use crate::failure::Failure;
use crate::requests::acknowledged::disk_check;
use crate::runs::{was_cut_short, was_not_run};
use crate::server::greeting::{Role, warnings};
use crate::span::Span;
use crate::target::Target;
use crate::wire::{Line, Question, Retry, Wire};
use link::Link;

use self::source::{Handle, Source};

/// The user's pool.
#[cfg(feature = "deadpool")]
pub use deadpool_redis::Pool;

/// A Redis, used from tokio over one connection of its own, or through the user's client.
///
/// With its own connection, requests for one lock take effect in order, and drawing a token costs one increment of a counter. A
/// connection, manager or pool that is passed in is shared: the keeper's renewals go through it, too, and every grant
/// also reads the server's clock, since such a client does not show when it has reconnected. Waiters poll; those of a
/// pool are notified if the pool comes with a URL (`Redis::pooled`).
pub struct Redis {
    wire: Wire,
    source: Source,
    warnings: Vec<String>,
}

impl Redis {
    /// Connects to the Redis of `config`: the first contact is made now, and takes about a second at most.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the client, or is not a Redis as the URL describes. Nothing was
    /// changed, except that the token counter may have been raised.
    ///
    /// # Cancel safety
    /// Can be dropped at any point.
    pub async fn connect(config: &RedisConfig) -> Result<Self, BackendError> {
        let (wire, link, warnings) = Self::link(config, Target::of(config)).await?;
        let redis = Self { wire, source: Source::Own(link), warnings };
        redis.check_disk(config).await.map_err(|failure| failure.into_error(Operation::Connect))?;
        Ok(redis)
    }

    /// Refuses a server that cannot wait for its disk, if it has to.
    async fn check_disk(&self, config: &RedisConfig) -> Result<(), Failure> {
        let Some(check) = disk_check(config.copies()) else { return Ok(()) };
        self.answer(&check, Span::from_now(CONNECT_WITHIN)).await
    }

    async fn link(
        config: &RedisConfig,
        target: Result<Target, Failure>,
    ) -> Result<(Wire, Link, Vec<String>), BackendError> {
        let failed = |failure: Failure| failure.into_error(Operation::Connect);
        let target = target.map_err(failed)?;
        let channel = Channel::new();
        let link = Link::new(target, Role::of(config), channel.clone());
        let warnings = match link.live().await {
            Ok(live) => warnings(config, live.server_info()),
            Err(failure) => {
                let Some(client) = link.target().client().cloned() else { return Err(failed(failure)) };
                let (failure, unexplained) = (failure.clone(), failure);
                let explained = spawn_blocking(move || explain(&client, failure)).await;
                return Err(failed(explained.unwrap_or(unexplained)));
            }
        };
        // If the server cannot push messages, waiters are not notified.
        let channel = channel.filter(|channel| channel.is_open());
        let wire = Wire::own(link.target(), channel).with_prefix(config.own_prefix()).with_copies(config.copies());
        Ok((wire, link, warnings))
    }

    /// The same Redis with `PREFIX:` before the names of locks.
    ///
    /// # Errors
    /// `Invalid` for a prefix that is empty, too long, reserved, or contains a control character.
    pub fn with_prefix(mut self, prefix: &str) -> Result<Self, Invalid> {
        self.wire = self.wire.with_prefix(&prefix.parse()?);
        Ok(self)
    }

    /// The same Redis over a connection of its own, or over what was passed in.
    pub(crate) fn another(&self) -> Self {
        Self { wire: self.wire.without_inbox(), source: self.source.another(), warnings: Vec::new() }
    }

    pub(crate) fn tell(&self, sink: EventSink) {
        self.wire.listen(sink);
    }

    async fn ask<Q: Question + Sync>(&self, question: Q, within: Duration) -> Result<Q::Answer, BackendError> {
        let answer = self.answer(&question, Span::from_now(within)).await;
        answer.map_err(|failure| failure.into_error(question.operation()))
    }

    /// Asks within a time limit that may be shared with other questions. An idempotent question is repeated once over
    /// another connection if the first one broke.
    pub(crate) fn answer<'a, Q: Question + Sync>(
        &'a self,
        question: &'a Q,
        span: Span,
    ) -> impl Future<Output = Result<Q::Answer, Failure>> + Send {
        self.answer_once(question, span, None).then(move |first| self.repeat(question, move || span, first))
    }

    /// Like [`answer`](Self::answer), but without a timer if the connection is already up: the caller drops the request
    /// when `within` is over. A quorum has one timer for the requests to all its nodes.
    pub(crate) async fn answer_untimed<Q: Question + Sync>(
        &self,
        question: &Q,
        within: Duration,
    ) -> Result<Q::Answer, Failure> {
        let at_hand = |link| Some((link, Link::at_hand(link)?));
        let Some((link, live)) = self.source.link().and_then(at_hand) else {
            // Boxed: most requests do not need this space.
            return Box::pin(self.answer(question, Span::from_now(within))).await;
        };
        let mut handle = Handle::Own(Arc::clone(&live));
        let unanswered = link.begin(live, within);
        let reply = self.evaluate(&mut handle, question, None).await;
        unanswered.end();
        let first = self.read(question, handle, Some(reply?), within, None);
        self.repeat(question, || Span::from_now(within), first).await
    }

    /// Asks once more if that is safe and the connection broke.
    fn repeat<'a, Q: Question + Sync>(
        &'a self,
        question: &'a Q,
        span: impl FnOnce() -> Span,
        first: Result<Q::Answer, Failure>,
    ) -> impl Future<Output = Result<Q::Answer, Failure>> + Send {
        match (first, question.retry()) {
            (Err(failure), Retry::Once) if failure.is_a_break() => {
                let span = span();
                let again = async move { self.answer_once(question, span, Some(&failure)).await };
                // Boxed: most requests do not need this space.
                Either::Left(again.boxed().map_err(Failure::after_a_part))
            }
            (outcome, Retry::Once | Retry::Never) => Either::Right(ready(outcome)),
        }
    }

    #[expect(clippy::manual_async_fn, reason = "its future would hold the arguments twice, and many may be under way")]
    fn answer_once<Q: Question + Sync>(
        &self,
        question: &Q,
        span: Span,
        first: Option<&Failure>,
    ) -> impl Future<Output = Result<Q::Answer, Failure>> + Send {
        async move {
            // One time limit for both steps, because each one is a timer.
            let mut handle = None;
            let asked = timeout_at(span.until.into(), async {
                let handle = handle.insert(self.source.checkout(question.operation()).await?);
                self.evaluate(handle, question, first).await
            });
            let reply = asked.await.ok().transpose()?;
            let handle = handle.ok_or_else(|| Failure::no_connection(&self.wire.server, span.within))?;
            self.read(question, handle, reply, span.within, first)
        }
    }

    /// Reads a reply, if there was one in time, and gives the connection back.
    fn read<Q: Question>(
        &self,
        question: &Q,
        handle: Handle,
        reply: Option<RedisResult<Value>>,
        within: Duration,
        first: Option<&Failure>,
    ) -> Result<Q::Answer, Failure> {
        let outcome = match reply {
            Some(reply) => reply
                .map_err(|error| classify(self.wire.asked(within), &error).at(|| handle.server_info().incarnation())),
            None => Err(Failure::no_answer(&self.wire.server, within)),
        };
        let answer = outcome.map(|reply| question.read(Line { first, ..self.line(&handle) }, reply));
        self.source.give_back(handle, within, answer.as_ref().err());
        let answer = answer.and_then(|read| read);
        if let Some(link) = self.source.link() {
            link.target().check(answer.as_ref().err());
        }
        answer
    }

    /// Sends a question, and sends it again on the same connection while its script ends before it is done.
    #[expect(clippy::manual_async_fn, reason = "as above")]
    fn evaluate<Q: Question + Sync>(
        &self,
        handle: &mut Handle,
        question: &Q,
        first: Option<&Failure>,
    ) -> impl Future<Output = Result<RedisResult<Value>, Failure>> + Send {
        async move {
            loop {
                let outcome = self.evaluate_once(handle, question, first).await?;
                if !outcome.as_ref().is_err_and(was_cut_short) {
                    return Ok(outcome);
                }
            }
        }
    }

    /// Sends a question; if the server did not run its script, sends it again on the same connection.
    #[expect(clippy::manual_async_fn, reason = "as above")]
    fn evaluate_once<Q: Question + Sync>(
        &self,
        handle: &mut Handle,
        question: &Q,
        first: Option<&Failure>,
    ) -> impl Future<Output = Result<RedisResult<Value>, Failure>> + Send {
        async move {
            let mut call = question.call(Line { first, ..self.line(handle) })?;
            if let Some(slot) = handle.server_info().unverified(call.slot) {
                drop(call);
                // Boxed: most requests do not need this space.
                if let Err(error) = Box::pin(handle.verify(slot)).await {
                    return Ok(Err(error));
                }
                call = question.call(Line { first, ..self.line(handle) })?;
            }
            let script = call.script;
            let outcome = handle.ask(call).await;
            handle.server_info().judge(&outcome);
            match script.filter(|_| outcome.as_ref().is_err_and(was_not_run)) {
                Some(script) => {
                    let again = question.call(Line { first, ..self.line(handle) })?;
                    // Boxed: most requests do not need this space.
                    Ok(Box::pin(handle.ask_alone(script, again)).await)
                }
                None => Ok(outcome),
            }
        }
    }

    fn line<'a>(&'a self, handle: &'a Handle) -> Line<'a> {
        Line { wire: &self.wire, server_info: handle.server_info(), first: None }
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis")
            .field("server", &self.source.shown())
            .field("prefix", &self.wire.prefix.as_deref())
            .finish()
    }
}
