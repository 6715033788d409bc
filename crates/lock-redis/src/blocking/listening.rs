//! When a thread that waits begins to listen for notifications.

use lock_core::latch::{Act, Request, Seen, Watching};
use lock_core::{Answer, Claim, Queueing};

use super::stack::Stack;
use crate::failure::Failure;
use crate::span::Span;

/// Opens the subscription of a client when somebody first has to wait, unless a lease that lasts has had it opened.
pub(crate) struct Listening<'a> {
    pub(super) stack: Option<&'a Stack>,
    pub(super) span: Span,
}

impl Listening<'_> {
    /// Nobody is to be notified.
    pub(crate) fn none(span: Span) -> Self {
        Self { stack: None, span }
    }

    /// A claim that takes a place should be notified of its turn. A claim that takes none needs no notification.
    pub(crate) fn claim(
        &self,
        claim: &Claim,
        asked: impl Fn(&Claim) -> Result<Answer, Failure>,
    ) -> Result<Answer, Failure> {
        if let (Some(stack), Queueing::Wanted) = (self.stack_that_hears_nothing(), claim.queueing) {
            let at_once = Claim { queueing: Queueing::Unwanted, ..claim.clone() };
            let answer = asked(&at_once)?;
            if !matches!(answer, Answer::Busy { .. }) {
                return Ok(answer);
            }
            stack.listen(self.span);
        }
        asked(claim)
    }

    /// A wait for a latch should be notified of its end. One that ends at once needs no notification.
    pub(crate) fn latch(&self, request: &Request, asked: impl Fn() -> Result<Seen, Failure>) -> Result<Seen, Failure> {
        if let (Some(stack), Act::Look { watching: Watching::Wanted }) = (self.stack_that_hears_nothing(), &request.act)
        {
            let seen = asked()?;
            if seen.state.is_some_and(|state| state.is_complete()) {
                return Ok(seen);
            }
            stack.listen(self.span);
        }
        asked()
    }

    fn stack_that_hears_nothing(&self) -> Option<&Stack> {
        self.stack.filter(|stack| stack.hears_nothing())
    }
}
