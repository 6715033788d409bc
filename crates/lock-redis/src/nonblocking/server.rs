//! The client of one server, on tokio.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, FutureExt, TryFutureExt, join_all, ready};
use redis::{RedisResult, Value};
use tokio::time::timeout_at;

use super::link::Link;
use super::source::Handle;
use crate::RedisConfig;
use crate::classify::classify;
use crate::connect::CONNECT_WITHIN;
use crate::failure::Failure;
use crate::requests::simple::disk_check;
use crate::runs::{was_cut_short, was_not_run};
use crate::server::greeting::warnings;
use crate::servers::Server;
use crate::span::Span;
use crate::wire::{Attempt, Line, Question, Retry};

impl Server<Link> {
    /// Connects, if there is no connection yet, and returns warnings about the server. Refuses one that cannot wait for its disk, if it
    /// has to.
    pub(super) async fn greet(&self, config: &RedisConfig) -> Result<Vec<String>, Failure> {
        let Some(link) = self.source.own() else { return Ok(Vec::new()) };
        let warnings = warnings(config, &link.live().await?.server_info);
        if let Some(check) = disk_check(config.copies()) {
            self.answer(&check, Span::from_now(CONNECT_WITHIN)).await?;
        }
        Ok(warnings)
    }

    /// Whether its waiters are notified. They are not if the server cannot push messages.
    pub(super) fn hears(&self) -> bool {
        self.wire.channel.as_ref().is_some_and(|channel| channel.is_open())
    }

    /// Asks within a time limit that may be shared with other questions. An idempotent question is repeated once over
    /// another connection if the first one broke.
    pub(crate) fn answer<'a, Q: Question + Sync>(
        &'a self,
        question: &'a Q,
        span: Span,
    ) -> impl Future<Output = Result<Q::Answer, Failure>> + Send {
        self.answer_once(question, span, Attempt::default())
            .then(move |first| self.repeat(question, move || span, first))
    }

    /// Asks each of these for itself, at the same time.
    pub(super) async fn answer_each<Q: Question + Sync>(
        &self,
        questions: &[Q],
        span: Span,
    ) -> Vec<Result<Q::Answer, Failure>> {
        join_all(questions.iter().map(|question| self.answer(question, span))).await
    }

    /// Like [`answer`](Self::answer), but without a timer if the connection is already up: the caller drops the request
    /// when `within` is over. A quorum has one timer for the requests to all its nodes.
    pub(crate) async fn answer_untimed<Q: Question + Sync>(
        &self,
        question: &Q,
        within: Duration,
    ) -> Result<Q::Answer, Failure> {
        let link = self.source.own();
        let Some((link, live)) = link.and_then(|link| Some((link, link.at_hand()?))) else {
            // Boxed: most requests do not need this space.
            return Box::pin(self.answer(question, Span::from_now(within))).await;
        };
        let mut handle = Handle::Own(Arc::clone(&live));
        let unanswered = link.begin(live, within);
        let until = Instant::now() + within;
        let reply = self.evaluate(&mut handle, question, until, Attempt::default()).await;
        unanswered.end();
        let first = self.read(question, handle, Some(reply?), within, Attempt::default());
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
                let again = async move { self.answer_once(question, span, Attempt::after(&failure)).await };
                // Boxed: most requests do not need this space.
                Either::Left(again.boxed().map_err(Failure::after_a_part))
            }
            (outcome, Retry::Once | Retry::Never) => Either::Right(ready(outcome)),
        }
    }

    #[expect(clippy::manual_async_fn, reason = "its future would hold the arguments twice, and many may be in flight")]
    pub(super) fn answer_once<Q: Question + Sync>(
        &self,
        question: &Q,
        span: Span,
        attempt: Attempt<'_>,
    ) -> impl Future<Output = Result<Q::Answer, Failure>> + Send {
        async move {
            // One time limit for both steps, because each one is a timer.
            let mut handle = None;
            let asked = timeout_at(span.until.into(), async {
                let handle = handle.insert(self.source.checkout(question.operation()).await?);
                self.evaluate(handle, question, span.until, attempt).await
            });
            let reply = asked.await.ok().transpose()?;
            let handle = handle.ok_or_else(|| Failure::no_connection(&self.wire.server, span.within))?;
            self.read(question, handle, reply, span.within, attempt)
        }
    }

    /// Reads a reply, if there was one in time, and gives the connection back.
    fn read<Q: Question>(
        &self,
        question: &Q,
        handle: Handle,
        reply: Option<RedisResult<Value>>,
        within: Duration,
        attempt: Attempt<'_>,
    ) -> Result<Q::Answer, Failure> {
        let outcome = match reply {
            Some(reply) => reply
                .map_err(|error| classify(self.wire.asked(within), &error).at(|| handle.server_info().incarnation())),
            None => Err(Failure::no_answer(&self.wire.server, within)),
        };
        let answer = outcome.map(|reply| self.line(&handle, attempt).read(question, reply));
        self.source.give_back(handle, within, answer.as_ref().err());
        answer.and_then(|read| read)
    }

    /// Sends a question, and sends it again on the same connection while its script ends before it is done.
    #[expect(clippy::manual_async_fn, reason = "as above")]
    fn evaluate<Q: Question + Sync>(
        &self,
        handle: &mut Handle,
        question: &Q,
        until: Instant,
        attempt: Attempt<'_>,
    ) -> impl Future<Output = Result<RedisResult<Value>, Failure>> + Send {
        async move {
            loop {
                let outcome = self.evaluate_once(handle, question, until, attempt).await?;
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
        until: Instant,
        attempt: Attempt<'_>,
    ) -> impl Future<Output = Result<RedisResult<Value>, Failure>> + Send {
        async move {
            let mut call = self.line(handle, attempt).call(question, until)?;
            if let Some(slot) = handle.server_info().unverified(call.slot) {
                drop(call);
                // Boxed: most requests do not need this space.
                if let Err(error) = Box::pin(handle.verify(slot)).await {
                    return Ok(Err(error));
                }
                call = self.line(handle, attempt).call(question, until)?;
            }
            let script = call.script;
            let outcome = handle.ask(call).await;
            handle.server_info().judge(&outcome);
            match script.filter(|_| outcome.as_ref().is_err_and(was_not_run)) {
                Some(script) => {
                    let again = self.line(handle, attempt).call(question, until)?;
                    // Boxed: most requests do not need this space.
                    Ok(Box::pin(handle.ask_alone(script, again)).await)
                }
                None => Ok(outcome),
            }
        }
    }

    fn line<'a>(&'a self, handle: &'a Handle, attempt: Attempt<'a>) -> Line<'a> {
        Line { wire: &self.wire, server_info: handle.server_info(), attempt }
    }
}
