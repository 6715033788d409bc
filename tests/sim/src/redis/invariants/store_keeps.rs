//! No holder relies on its lease for longer than the store keeps it.

use crate::clock::Clock;
use crate::invariants::{Holding, Watch};
use crate::redis::server::{Server, millis};

/// This is stricter than "one holder": it finds the gap, whether or not another owner uses it.
pub(crate) fn check(watch: &Watch, holdings: &[Holding<'_>], server: &Server, clock: Clock) -> Result<(), String> {
    for Holding { hold, until, .. } in holdings {
        let lease = hold.lease();
        if watch.epoch_of(lease) != Some(watch.epoch()) {
            continue;
        }
        let lock = server.data.locks.get(&lease.name).and_then(|keys| keys.lock.as_ref());
        let same =
            lock.filter(|lock| lock.value.owner() == Some(lease.owner) && lock.value.tokens() == Some(lease.tokens));
        let until = millis(clock.read(*until));
        if same.is_none_or(|lock| lock.ends < until) {
            return Err(format!("{hold:?} is relied on until {until}, but the store has {lock:?}"));
        }
    }
    Ok(())
}
