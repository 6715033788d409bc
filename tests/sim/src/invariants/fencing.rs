//! The resource behind the locks: it remembers the highest token, and refuses no write of a valid holder.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{FencingToken, Hold, LockName};

use super::{Rule, Watch};
use crate::fault::{Fault, Tally};

#[derive(Debug, Default)]
pub(crate) struct Fencing(BTreeMap<LockName, FencingToken>);

impl Fencing {
    fn accepts(&mut self, name: &LockName, token: FencingToken) -> bool {
        let highest = self.0.entry(name.clone()).or_insert(token);
        *highest = token.max(*highest);
        *highest == token
    }
}

impl Watch {
    /// A holder writes, with so much left of its hold at that moment. Where the store lost data since it was granted,
    /// there can be another holder.
    pub(crate) fn written(&mut self, hold: &Hold, remaining: Duration, tally: &mut Tally) {
        let lease = hold.lease();
        if self.fencing.accepts(&lease.name, hold.token()) {
            return;
        }
        tally.count(Fault::WriteRefused);
        if !remaining.is_zero() && !self.tokens_fell && self.epoch_of(lease) == Some(self.epoch()) {
            self.report(Rule::Fencing, Err(format!("the write of a valid holder was refused: {hold:?}")));
        }
    }
}
