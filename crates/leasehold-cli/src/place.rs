//! The place of a waiter in the queue.

use std::sync::atomic::{AtomicU32, Ordering};

/// The place of a waiter in the queue, as far as snapshots from outside tell: newcomers are behind it, so it is never worse than before.
#[derive(Debug)]
pub(crate) struct Place(AtomicU32);

impl Default for Place {
    fn default() -> Self {
        Self(AtomicU32::new(u32::MAX))
    }
}

impl Place {
    /// For display, given how many wait now, this one included.
    pub(crate) fn told(&self, waiters: u32) -> String {
        if waiters == 0 {
            // It is not in the queue, or the store has none.
            self.0.store(u32::MAX, Ordering::Relaxed);
            return String::new();
        }
        match self.0.fetch_min(waiters, Ordering::Relaxed).min(waiters) {
            1 => ", next in line".to_owned(),
            place => format!(", place {place} in line or better"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_queue_only_gets_better() {
        let place = Place::default();
        let told = [3, 5, 2, 4, 1, 9].map(|waiters| place.told(waiters));
        let third = ", place 3 in line or better";
        let second = ", place 2 in line or better";
        assert_eq!(told, [third, third, second, second, ", next in line", ", next in line"]);
        assert_eq!([place.told(0), place.told(2)], [String::new(), second.to_owned()], "it has queued again");
    }
}
