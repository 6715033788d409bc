//! Which hash slots were verified at a primary of a cluster.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::hash_slot::HashSlot;

/// The hash slots that were verified since the primary was greeted.
pub(crate) struct Verified {
    /// One bit for each.
    slots: Vec<AtomicU64>,
    /// The longest ttl of any client in any of them, in milliseconds.
    longest: AtomicU64,
}

impl Verified {
    pub(crate) fn has(&self, slot: HashSlot) -> bool {
        let (word, bit) = place(slot);
        self.slots.get(word).is_some_and(|bits| bits.load(Ordering::Acquire) & bit != 0)
    }

    pub(crate) fn add(&self, slot: HashSlot, longest: u64) {
        let (word, bit) = place(slot);
        self.longest.fetch_max(longest, Ordering::AcqRel);
        self.slots.get(word).iter().for_each(|bits| _ = bits.fetch_or(bit, Ordering::AcqRel));
    }

    /// The longest ttl of any client that used one of the hash slots before they were verified, or that verified them.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_millis(self.longest.load(Ordering::Acquire))
    }

    /// A hash slot has left the primary, or the server is no primary any more. Either may come back with less data.
    pub(crate) fn clear(&self) {
        self.slots.iter().for_each(|bits| bits.store(0, Ordering::Release));
    }
}

/// The word of a hash slot, and its bit there.
fn place(slot: HashSlot) -> (usize, u64) {
    (usize::from(slot.get() / 64), 1 << (slot.get() % 64))
}

impl Default for Verified {
    fn default() -> Self {
        let slots = (0..HashSlot::COUNT / 64).map(|_| AtomicU64::new(0)).collect();
        Self { slots, longest: AtomicU64::new(0) }
    }
}

/// What was verified is no part of what a server is.
impl PartialEq for Verified {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Verified {}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verified")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_slot_is_remembered_on_its_own() {
        let verified = Verified::default();
        let [one, other] = [b"a", b"b"].map(|key| HashSlot::of(key));
        verified.add(one, 60_000);
        assert!(verified.has(one) && !verified.has(other));
        verified.add(other, 5000);
        assert!(verified.has(one) && verified.has(other));
        verified.clear();
        assert!(!verified.has(one) && !verified.has(other));
        assert_eq!(verified.longest(), Duration::from_secs(60));
    }
}
