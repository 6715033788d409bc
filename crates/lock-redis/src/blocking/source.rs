//! Where the connections of plain threads come from.

use std::sync::Arc;

use lock_core::{Capabilities, Isolation, Operation};

use super::stack::{Asks, Heard, Stack};
use crate::channel::Channel;
use crate::failure::Failure;
use crate::servers;
use crate::span::Span;
use crate::target::Target;

#[derive(Clone)]
pub(crate) enum Source {
    Own(Arc<Stack>),
    /// The user's connections, and perhaps some of its own, on one of which waiters are notified.
    #[cfg_attr(not(feature = "r2d2"), expect(dead_code, reason = "there is no pool"))]
    Lent(Arc<dyn Lender>, Option<Arc<Stack>>),
}

/// A pool of the user's.
pub(crate) trait Lender: Send + Sync {
    /// Asks over one of its connections.
    fn ask(&self, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure>;
}

impl servers::Source for Source {
    fn own(target: Target, channel: Option<Arc<Channel>>) -> Self {
        Self::Own(Arc::new(Stack::new(target, channel)))
    }

    fn another(&self) -> Self {
        match self.stack() {
            Some(stack) => Self::Own(Arc::new(stack.another())),
            None => self.clone(),
        }
    }

    fn promise(source: Option<&Self>, redis: Capabilities) -> Capabilities {
        let is_shared = matches!(source, Some(Self::Lent(_, None)));
        redis.with_isolation(if is_shared { Isolation::Shared } else { Isolation::Isolated })
    }

    fn forget_verified(&self) {
        self.stack().into_iter().for_each(|stack| stack.forget_verified());
    }

    fn listens(&self) -> bool {
        self.stack().is_some_and(|stack| stack.listens())
    }

    fn listen_in_time(&self) {
        self.stack().into_iter().for_each(|stack| stack.listen_in_time());
    }
}

impl Source {
    /// Connections of its own, one of which can listen.
    pub(super) fn stack(&self) -> Option<&Arc<Stack>> {
        match self {
            Self::Own(stack) => Some(stack),
            Self::Lent(_, stack) => stack.as_ref(),
        }
    }

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
