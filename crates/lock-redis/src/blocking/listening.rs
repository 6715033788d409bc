//! When a thread that waits begins to listen for notifications.

use lock_core::latch::{Request, Seen};
use lock_core::{Answer, Claim, LockName, Queueing};

use super::Redis;
use crate::failure::Failure;
use crate::span::Span;

impl Redis {
    /// A claim that takes a place should be notified of its turn. A claim that takes none needs no notification.
    pub(super) fn claim_at_once(&self, claim: &Claim, span: Span) -> Result<Option<Answer>, Failure> {
        let at_once = || self.answer(&claim.name, &&Claim { queueing: Queueing::Unwanted, ..claim.clone() }, span);
        self.before_listening(&claim.name, at_once, |answer| !matches!(answer, Answer::Busy { .. }), span)
    }

    /// A wait for a latch should be notified of its end. One that ends at once needs no notification.
    pub(super) fn look_at_once(&self, request: &Request, span: Span) -> Result<Option<Seen>, Failure> {
        let is_over = |seen: &Seen| seen.state.is_some_and(|state| state.is_complete());
        self.before_listening(&request.name, || self.answer(&request.name, &request, span), is_over, span)
    }

    /// Opens the subscription at a server when somebody first has to wait there, unless a lease that lasts has had it opened. Asks before
    /// whether the wait is over at once, and if so, gives the answer.
    fn before_listening<A>(
        &self,
        name: &LockName,
        ask: impl FnOnce() -> Result<A, Failure>,
        is_over: impl FnOnce(&A) -> bool,
        span: Span,
    ) -> Result<Option<A>, Failure> {
        let server = self.servers.server_of(name);
        let stack = server.as_ref().and_then(|server| server.source.own());
        let Some(stack) = stack.filter(|stack| stack.hears_nothing()) else { return Ok(None) };
        let answer = ask()?;
        if is_over(&answer) {
            return Ok(Some(answer));
        }
        stack.listen(span);
        Ok(None)
    }
}
