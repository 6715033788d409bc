//! Questions that are the same command for every server.

use std::time::Duration;

use lock_core::Operation;
use redis::Value;

use crate::failure::Failure;
use crate::replicas::Copies;
use crate::wire::{Call, Line, Question, Retry};

/// One command, and how its reply is read.
pub(crate) struct Simple<F> {
    pub(crate) call: Call,
    pub(crate) operation: Operation,
    /// Never, if its second answer would be another one.
    pub(crate) retry: Retry,
    pub(crate) read: F,
}

impl<A, F: Fn(Line<'_>, Value) -> Result<A, Failure>> Simple<F> {
    /// A question of which the answer stays the same if it is asked again.
    pub(crate) fn new(operation: Operation, call: Call, read: F) -> Self {
        Self { call, operation, retry: Retry::Once, read }
    }
}

/// Whether the server can wait until what it wrote is on disk: to check on connecting, if grants have to be.
pub(crate) fn disk_check(copies: Option<Copies>) -> Option<impl Question<Answer = ()>> {
    let copies = copies.filter(|copies| copies.fsync.is_some())?;
    let wait = Call::plain(copies.command(Duration::from_millis(1)));
    Some(Simple::new(Operation::Connect, wait, |_line, _reply| Ok(())))
}

impl<A: Send, F: Fn(Line<'_>, Value) -> Result<A, Failure>> Question for Simple<F> {
    type Answer = A;

    fn operation(&self) -> Operation {
        self.operation
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        Ok(self.call.clone())
    }

    fn read(&self, line: Line<'_>, reply: Value) -> Result<A, Failure> {
        (self.read)(line, reply)
    }

    fn retry(&self) -> Retry {
        self.retry
    }
}
