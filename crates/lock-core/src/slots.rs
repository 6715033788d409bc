//! The numbered places of a semaphore that one lease takes.

use std::collections::BTreeSet;
use std::fmt;

/// The slots of a lease: as many numbers as it takes permits, in ascending order; none for any other lease.
///
/// A semaphore of limit `n` has the slots 0 to n - 1. No two living leases share one, so a slot can stand for a thing: a
/// GPU, a port, a licence. The n-th token of the lease belongs to the n-th slot, and the tokens of a slot rise.
///
/// ```
/// # mod leasehold { pub mod inspect { pub use lock_core::Slots; } }
/// use leasehold::inspect::Slots;
///
/// let slots = Slots::new([3, 1]);
/// assert_eq!((slots.get(), slots.to_string().as_str()), (&[1, 3][..], "1,3"));
/// assert!(Slots::NONE.get().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
// No slots are no allocation, because almost every lease has none.
pub struct Slots(Option<Box<[u32]>>);

impl Slots {
    /// No slots: those of a lease that takes no permits.
    pub const NONE: Self = Self(None);

    /// These slots, in ascending order and each once.
    pub fn new(slots: impl IntoIterator<Item = u32>) -> Self {
        let slots: BTreeSet<u32> = slots.into_iter().collect();
        Self((!slots.is_empty()).then(|| slots.into_iter().collect()))
    }

    /// The numbers, in ascending order.
    pub fn get(&self) -> &[u32] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.get().iter().map(u32::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_ascending_unique_and_small() {
        assert_eq!(Slots::new([4, 0, 4]).get(), [0, 4]);
        assert_eq!(Slots::new([]), Slots::NONE);
        assert_eq!(size_of::<Slots>(), 16);
    }
}
