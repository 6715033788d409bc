//! Where the connections of plain threads come from.

use lock_core::Operation;

use super::stack::{Asks, Heard, Stack};
use crate::failure::Failure;
use crate::servers::Source;
use crate::span::Span;

impl Source<Stack> {
    /// Sends a command and waits for its reply. A release does not wait until the pool has a free connection and has
    /// checked it.
    pub(super) fn ask(&self, operation: Operation, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure> {
        match self {
            Self::Own(stack) => stack.ask(asks, span),
            Self::Lent(_, Some(stack)) if operation == Operation::Release => stack.ask(asks, span),
            Self::Lent(lender, _) => lender.ask(asks, span),
        }
    }
}
