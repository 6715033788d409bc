//! Questions that are the same command for every server.

use std::time::Duration;

use lock_core::Operation;
use redis::{Cmd, Value};

use crate::failure::Failure;
use crate::replicas::Copies;
use crate::wire::{Call, Line, Question, Retry};

/// One command, and how its reply is read.
pub(crate) struct Simple<A> {
    command: Cmd,
    operation: Operation,
    /// Never, if its second answer would be another one.
    retry: Retry,
    read: fn(Line<'_>, Value) -> Result<A, Failure>,
}

impl<A> Simple<A> {
    pub(crate) fn new(
        operation: Operation,
        retry: Retry,
        command: Cmd,
        read: fn(Line<'_>, Value) -> Result<A, Failure>,
    ) -> Self {
        Self { command, operation, retry, read }
    }
}

/// Whether the server can wait until what it wrote is on disk: to check on connecting, if grants have to be.
pub(crate) fn disk_check(copies: Option<Copies>) -> Option<Simple<()>> {
    let copies = copies.filter(|copies| copies.fsync().is_some())?;
    let wait = copies.command(Duration::from_millis(1));
    Some(Simple::new(Operation::Connect, Retry::Once, wait, |_line, _reply| Ok(())))
}

impl<A: Send> Question for Simple<A> {
    type Answer = A;

    fn operation(&self) -> Operation {
        self.operation
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        Ok(Call::plain(self.command.clone()))
    }

    fn read(&self, line: Line<'_>, reply: Value) -> Result<A, Failure> {
        (self.read)(line, reply)
    }

    fn retry(&self) -> Retry {
        self.retry
    }
}
