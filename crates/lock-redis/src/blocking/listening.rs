//! When a thread that waits begins to listen for notifications.

use std::sync::Arc;

use lock_core::latch::{Act, Request, Seen, Watching};
use lock_core::{Answer, Claim, LockName, Queueing};

use super::{Redis, Source};
use crate::failure::Failure;
use crate::servers::{Server, Servers};
use crate::span::Span;

impl Redis {
    /// A claim that takes a place should be notified of its turn. A claim that takes none needs no notification.
    pub(super) fn claim(&self, claim: &Claim, span: Span) -> Result<Answer, Failure> {
        if claim.queueing == Queueing::Wanted {
            let at_once = || self.answer(&claim.name, &&Claim { queueing: Queueing::Unwanted, ..claim.clone() }, span);
            let is_over = |answer: &Answer| !matches!(answer, Answer::Busy { .. });
            if let Some(answer) = self.before_listening(&claim.name, at_once, is_over, span)? {
                return Ok(answer);
            }
        }
        self.answer(&claim.name, &claim, span)
    }

    /// A wait for a latch should be notified of its end. One that ends at once needs no notification.
    pub(super) fn watch(&self, request: &Request, span: Span) -> Result<Seen, Failure> {
        let asked = || self.answer(&request.name, &request, span);
        if request.act == (Act::Look { watching: Watching::Wanted }) {
            let is_over = |seen: &Seen| seen.state.is_some_and(|state| state.is_complete());
            if let Some(seen) = self.before_listening(&request.name, asked, is_over, span)? {
                return Ok(seen);
            }
        }
        asked()
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
        let server = self.server_of(name);
        let Some(stack) =
            server.as_ref().and_then(|server| server.source.stack()).filter(|stack| stack.hears_nothing())
        else {
            return Ok(None);
        };
        let answer = ask()?;
        if is_over(&answer) {
            return Ok(Some(answer));
        }
        stack.listen(span);
        Ok(None)
    }

    /// The server that has a lock, if it is known. Otherwise the request finds out why it is not.
    pub(super) fn server_of(&self, name: &LockName) -> Option<Arc<Server<Source>>> {
        match &self.servers {
            Servers::One(server) => Some(Arc::clone(server)),
            Servers::Many(many) => many.node(&many.primary(name)?).ok(),
        }
    }
}
