//! Tokens rise in the order of admission. Across a loss of data, whatever is granted later has a higher token, even if
//! an earlier grant is admitted only then.

use std::collections::BTreeMap;

use lock_core::{FencingToken, Hold, LockName};

use crate::invariants::Epoch;

/// The lowest and the highest token that was admitted in one memory of the store.
#[derive(Debug)]
struct Span {
    low: FencingToken,
    high: FencingToken,
}

#[derive(Debug, Default)]
pub(crate) struct Tokens(BTreeMap<LockName, BTreeMap<Epoch, Span>>);

impl Tokens {
    pub(crate) fn admitted(&mut self, epoch: Epoch, hold: &Hold) -> Result<(), String> {
        let token = hold.token();
        let spans = self.0.entry(hold.lease().name.clone()).or_default();
        if let Some((_, before)) = spans.range(..=epoch).next_back().filter(|(_, before)| before.high >= token) {
            return Err(format!("token {token} was admitted after {}", before.high));
        }
        let mut later = spans.range(epoch..).filter(|(other, _)| **other != epoch);
        if let Some((_, after)) = later.next().filter(|(_, after)| after.low <= token) {
            return Err(format!("token {token} is from before a loss of data, and {} from after it", after.low));
        }
        let span = spans.entry(epoch).or_insert(Span { low: token, high: token });
        span.high = token;
        Ok(())
    }
}
