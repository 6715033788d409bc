//! Where the connections of plain threads come from.

use std::sync::Arc;

use lock_core::Operation;
use redis::{RedisResult, Value};

use super::stack::{Heard, Stack};
use crate::failure::Failure;
use crate::runs::was_not_run;
use crate::server::server_info::ServerInfo;
use crate::servers::{Server, Source};
use crate::span::Span;
use crate::wire::{Attempt, Call, Question};

/// What one request is asked over. Each command may go over another connection.
pub(super) struct Handle<'a> {
    source: &'a Source<Stack>,
    operation: Operation,
    span: &'a Span,
    /// The server that answered last.
    server_info: Option<Arc<ServerInfo>>,
}

impl Source<Stack> {
    /// Connections for one request.
    pub(super) fn checkout<'a>(&'a self, operation: Operation, span: &'a Span) -> Result<Handle<'a>, Failure> {
        Ok(Handle { source: self, operation, span, server_info: None })
    }
}

impl Handle<'_> {
    pub(super) fn server_info(&self) -> &ServerInfo {
        self.server_info.as_deref().unwrap_or(ServerInfo::UNKNOWN)
    }

    /// Sends a command and waits for its reply. A release does not wait until the pool has a free connection and has
    /// checked it.
    pub(super) fn ask(
        &mut self,
        asks: impl Fn(&ServerInfo) -> Result<Call, Failure>,
    ) -> Result<RedisResult<Value>, Failure> {
        let heard = match self.source {
            Source::Own(stack) => stack.ask(&asks, *self.span),
            Source::Lent(_, Some(stack)) if self.operation == Operation::Release => stack.ask(&asks, *self.span),
            Source::Lent(lender, _) => lender.ask(&asks, *self.span),
        };
        let Heard { reply, server_info } = heard?;
        self.server_info = Some(server_info);
        Ok(reply)
    }

    /// The connections were given back already.
    pub(super) fn end(self, _failure: Option<&Failure>) {}
}

impl Server<Stack> {
    /// Asks each of these for itself, in one write if a connection is free. None of them depends on a counter.
    pub(crate) fn answer_each<Q: Question + Sync>(
        &self,
        questions: &[Q],
        span: Span,
    ) -> Vec<Result<Q::Answer, Failure>> {
        let calls = |server_info: &ServerInfo| {
            let line = self.line(server_info, Attempt::default());
            questions.iter().map(|question| line.call(question, span.until)).collect()
        };
        let stack = self.source.own().filter(|_| questions.len() > 1);
        let heard = match stack.and_then(|stack| stack.ask_each(&calls, span)) {
            None => return questions.iter().map(|question| self.answer(question, span)).collect(),
            Some(Err(failure)) => return questions.iter().map(|_| Err(failure.clone())).collect(),
            Some(Ok(heard)) => heard,
        };
        let each = questions.iter().zip(heard).map(|(question, Heard { reply, server_info })| {
            if reply.as_ref().is_err_and(was_not_run) {
                return self.answer(question, span);
            }
            let asking = self.asking(question, span, Attempt::default());
            let (source, operation) = (&self.source, question.operation());
            let handle = Handle { source, operation, span: &span, server_info: Some(server_info) };
            match asking.read(handle, Some(reply)) {
                Err(failure) if asking.may_repeat(&failure) => asking.again(failure),
                outcome => outcome,
            }
        });
        each.collect()
    }
}
