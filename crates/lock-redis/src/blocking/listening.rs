//! When a thread that waits begins to listen for notifications.

use lock_core::LockName;

use super::Redis;
use crate::failure::Failure;
use crate::span::Span;

impl Redis {
    /// Opens the subscription at a server when somebody first has to wait there, unless a lease that lasts has had it opened. Asks before
    /// whether the wait is over at once, and if so, gives the answer: then no notification is needed.
    pub(super) fn before_waiting<A>(
        &self,
        name: &LockName,
        span: Span,
        ask: impl FnOnce() -> Result<A, Failure>,
        is_over: impl FnOnce(&A) -> bool,
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
