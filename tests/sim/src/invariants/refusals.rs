//! A waiter without a time limit is not rejected, and none is rejected for a reason that can only be a bug.

use lock_core::{AcquireError, ErrorKind, Refusal};

use super::{Rule, Watch};
use crate::wish::Wait;

impl Watch {
    pub(crate) fn refused(&mut self, wait: Wait, refusal: &Refusal) {
        let fair = match refusal {
            Refusal::Busy { .. } => wait == Wait::Not,
            Refusal::Error(AcquireError::TimedOut { .. }) => matches!(wait, Wait::For(_)),
            Refusal::Error(AcquireError::Backend(error)) if error.kind() == ErrorKind::Config => self.needs_operator,
            Refusal::Error(AcquireError::Backend(error)) if error.kind() == ErrorKind::OtherKind => self.used_otherwise,
            Refusal::Error(AcquireError::Backend(error)) => {
                // A session may refuse releases. They are repeated, so that is the trouble of those who wait behind them.
                wait != Wait::Forever && (error.kind().is_transient() || error.kind() == ErrorKind::Denied)
            }
            // Only who has a ticket gets this.
            Refusal::Error(AcquireError::TicketOver { .. }) => true,
            Refusal::Error(_) => false,
        };
        if !fair {
            self.report(Rule::Refusals, Err(format!("somebody who waits {wait:?} was rejected: {refusal:?}")));
        }
    }
}
