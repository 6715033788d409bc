//! How one server is asked. Compiled for threads as well.

use std::cell::Cell;

use redis::{RedisResult, Value};

use super::source::Handle;
use super::{Connections, both, in_time, large};
use crate::RedisConfig;
use crate::classify::classify;
use crate::connect::CONNECT_WITHIN;
use crate::failure::Failure;
use crate::requests::simple::disk_check;
use crate::runs::{was_cut_short, was_not_run};
use crate::script::Script;
use crate::server::greeting::warnings;
use crate::server::server_info::ServerInfo;
use crate::server::verification;
use crate::servers::Server;
use crate::span::Span;
use crate::wire::{Attempt, Call, Line, Question, Retry, load};

type Reply = RedisResult<Value>;
/// Makes the command for a server.
type Asks<'a> = dyn Fn(&ServerInfo) -> Result<Call, Failure> + Sync + 'a;

#[both]
impl Server<Connections> {
    /// Connects, if there is no connection yet, and returns warnings about the server. Refuses one that cannot wait for its disk, if it
    /// has to.
    pub(super) async fn greet(&self, config: &RedisConfig) -> Result<Vec<String>, Failure> {
        let Some(own) = self.source.own() else { return Ok(Vec::new()) };
        let warnings = warnings(config, &*own.greet(Span::from_now(CONNECT_WITHIN)).await?);
        if let Some(check) = disk_check(config.copies()) {
            self.answer(&check, Span::from_now(CONNECT_WITHIN)).await?;
        }
        Ok(warnings)
    }

    /// Asks within a time limit that may be shared with other questions. An idempotent question is repeated once over
    /// another connection if the first one broke.
    pub(crate) async fn answer<Q: Question + Sync>(&self, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        let asking = self.asking(question, span, Attempt::default());
        match asking.once().await {
            // Most requests do not need this space.
            Err(failure) if asking.may_repeat(&failure) => large(asking.again(failure)).await,
            outcome => outcome,
        }
    }
}

impl Server<Connections> {
    pub(super) fn asking<'a, Q>(&'a self, question: &'a Q, span: Span, attempt: Attempt<'a>) -> Asking<'a, Q> {
        Asking { server: self, question, span, attempt }
    }

    pub(super) fn line<'a>(&'a self, server_info: &'a ServerInfo, attempt: Attempt<'a>) -> Line<'a> {
        Line { wire: &self.wire, server_info, attempt }
    }
}

/// An attempt at a question. Methods borrow it, so that a future holds it once.
pub(super) struct Asking<'a, Q> {
    server: &'a Server<Connections>,
    question: &'a Q,
    span: Span,
    attempt: Attempt<'a>,
}

#[both]
impl<Q: Question + Sync> Asking<'_, Q> {
    /// One time limit for connecting and asking, because each one is a timer in async code.
    pub(super) async fn once(&self) -> Result<Q::Answer, Failure> {
        let mut handle = None;
        let reply = in_time(&self.span, self.reply(&mut handle)).await.transpose()?;
        let handle = handle.ok_or_else(|| Failure::no_connection(&self.server.wire.server, self.span.within))?;
        self.read(handle, reply)
    }

    /// Whether it may be sent again after this.
    pub(super) fn may_repeat(&self, failure: &Failure) -> bool {
        failure.is_a_break() && self.question.retry() == Retry::Once
    }

    /// Asks once more, over another connection.
    pub(super) async fn again(&self, first: Failure) -> Result<Q::Answer, Failure> {
        let again = Asking { attempt: Attempt::after(&first), ..*self };
        again.once().await.map_err(Failure::after_a_part)
    }

    /// Asks over a connection, and sends the question again while its script ends before it is done.
    async fn reply<'a>(&'a self, handle: &mut Option<Handle<'a>>) -> Result<Reply, Failure> {
        let handle = handle.insert(self.server.source.checkout(self.question.operation(), &self.span).await?);
        let call =
            |server_info: &ServerInfo| self.server.line(server_info, self.attempt).call(self.question, self.span.until);
        let mut reply = evaluated(handle, &call).await?;
        while reply.as_ref().is_err_and(was_cut_short) {
            // Most requests do not need this space.
            reply = large(evaluated(handle, &call)).await.map_err(Failure::after_a_part)?;
        }
        Ok(reply)
    }

    /// Reads a reply, if there was one in time, and gives the connection back.
    pub(super) fn read(&self, handle: Handle<'_>, reply: Option<Reply>) -> Result<Q::Answer, Failure> {
        let (wire, within, server_info) = (&self.server.wire, self.span.within, handle.server_info());
        let broke = |error| classify(wire.asked(within), &error).at(|| server_info.incarnation());
        let reply = reply.map_or_else(|| Err(Failure::no_answer(&wire.server, within)), |reply| reply.map_err(broke));
        let answer = reply.map(|reply| self.server.line(server_info, self.attempt).read(self.question, reply));
        handle.end(answer.as_ref().err());
        answer.and_then(|read| read)
    }
}

/// Sends a question; if the server did not run its script, sends it again.
#[both]
async fn evaluated(handle: &mut Handle<'_>, call: &Asks<'_>) -> Result<Reply, Failure> {
    let reply = verified(handle, call).await?;
    if !reply.as_ref().is_err_and(was_not_run) {
        return Ok(reply);
    }
    match call(handle.server_info())?.script {
        // Most requests do not need this space.
        Some(script) => large(in_full(handle, script, call)).await,
        None => Ok(reply),
    }
}

/// Sends what the server did not run, and not together with others: one of them may be at fault. Loads what it may have forgotten, also
/// the script for several locks, for later requests. This one does not depend on that: it brings its own text.
#[both]
async fn in_full(handle: &mut Handle<'_>, script: &'static Script, call: &Asks<'_>) -> Result<Reply, Failure> {
    for script in [script].into_iter().chain(script.many.map(|many| &many.script)) {
        _ = handle.ask(|_: &ServerInfo| Ok(Call::plain(load(script)))).await?;
    }
    verified(handle, &|server_info: &ServerInfo| Ok(call(server_info)?.in_full())).await
}

/// Asks, and before that has the counter of the hash slot verified over the connection that is used, if the question depends on it.
#[both]
async fn verified(handle: &mut Handle<'_>, call: &Asks<'_>) -> Result<Reply, Failure> {
    let unverified = Cell::new(None);
    loop {
        let next = |server_info: &ServerInfo| {
            let call = call(server_info)?;
            unverified.set(server_info.unverified(call.slot));
            Ok(unverified.get().map_or(call, |slot| verification::of_slot(server_info, slot)))
        };
        let reply = handle.ask(next).await?;
        match (unverified.get(), reply) {
            (Some(slot), Ok(reply)) => handle.server_info().verified(slot, verification::longest(reply)),
            (_, reply) => {
                handle.server_info().judge(&reply);
                return Ok(reply);
            }
        }
    }
}
