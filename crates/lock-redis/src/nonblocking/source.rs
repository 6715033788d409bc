//! Where the connections of a tokio client come from.

use std::sync::Arc;

use futures_util::future::{Either, FutureExt, join_all, ready};
use lock_core::Operation;
use redis::{RedisResult, Value};

use super::lender::Lent;
use super::link::Link;
use super::live::Live;
use crate::failure::{Failure, Fate};
use crate::server::server_info::ServerInfo;
use crate::servers::{Server, Source};
use crate::span::Span;
use crate::wire::{Call, Question};

/// A connection for one request. Small, because each request holds one while it waits.
pub(super) enum Handle<'a> {
    Own(Asked<'a>),
    Lent(Box<dyn Lent>),
}

/// A request over a connection of the client's own.
pub(super) struct Asked<'a> {
    link: &'a Link,
    live: Arc<Live>,
    /// The time that it has. `None` once it was answered, or failed.
    span: Option<&'a Span>,
}

/// It was dropped, perhaps because its time was over.
impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(span) = self.span
            && span.left().is_zero()
            && self.live.silence.timed_out(span.within)
        {
            self.link.drop_connection(&self.live);
        }
    }
}

impl Source<Link> {
    /// A connection for one request. A release does not wait until a pool has a free connection and has checked it.
    pub(super) async fn checkout<'a>(&'a self, operation: Operation, span: &'a Span) -> Result<Handle<'a>, Failure> {
        let link = match self {
            Self::Own(link) => link,
            Self::Lent(_, Some(link)) if operation == Operation::Release => link,
            Self::Lent(lender, _) => return Ok(Handle::Lent(lender.lend().await?)),
        };
        Ok(Handle::Own(Asked { link, live: link.live().await?, span: Some(span) }))
    }
}

impl Server<Link> {
    /// Asks each of these for itself, at the same time.
    pub(super) async fn answer_each<Q: Question + Sync>(
        &self,
        questions: &[Q],
        span: Span,
    ) -> Vec<Result<Q::Answer, Failure>> {
        join_all(questions.iter().map(|question| self.answer(question, span))).await
    }
}

impl Handle<'_> {
    pub(super) fn server_info(&self) -> &ServerInfo {
        match self {
            Self::Own(asked) => &asked.live.server_info,
            Self::Lent(_) => ServerInfo::UNKNOWN,
        }
    }

    /// Sends a command and waits for its answer. Not an `async fn`, whose future would hold the command twice.
    pub(super) fn ask(
        &mut self,
        asks: impl Fn(&ServerInfo) -> Result<Call, Failure>,
    ) -> impl Future<Output = Result<RedisResult<Value>, Failure>> + Send {
        match (asks(self.server_info()), self) {
            (Ok(call), Self::Own(asked)) => Either::Left(asked.live.batcher.ask(call).map(Ok)),
            // Boxed: the requests of most clients do not need this space.
            (Ok(call), Self::Lent(connection)) => {
                Either::Right(async move { Ok(call.ask_async(&mut **connection).await) }.boxed())
            }
            (Err(failure), _) => Either::Right(ready(Err(failure)).boxed()),
        }
    }

    /// Gives the connection back, after an answer or this failure.
    pub(super) fn end(self, failure: Option<&Failure>) {
        let is_broken = failure.is_some_and(|failure| failure.fate == Fate::Drop);
        match self {
            Self::Own(mut asked) => {
                if failure.is_none_or(Failure::is_an_answer) {
                    asked.live.silence.answered();
                    asked.span = None;
                }
                if is_broken {
                    asked.span = None;
                    asked.link.drop_connection(&asked.live);
                }
            }
            Self::Lent(connection) if is_broken => connection.end(),
            Self::Lent(_) => {}
        }
    }
}
