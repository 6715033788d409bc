//! Values by turn, in the order of the turns.

use std::collections::VecDeque;

use lock_core::station::TurnId;

/// One value for each of some turns, in the order of the turns.
///
/// To look one up, to add one at the end and to take one out costs next to nothing however many there are. While it is
/// empty it keeps no memory, and for one value no more than that needs.
#[derive(Debug)]
pub struct ByTurn<T> {
    /// A value that is taken out of the middle leaves a gap; there are never more gaps than values, and none at either end.
    slots: VecDeque<Slot<T>>,
    gaps: usize,
}

#[derive(Debug)]
struct Slot<T> {
    turn: TurnId,
    value: Option<T>,
}

impl<T> ByTurn<T> {
    /// Sets the value of a turn.
    pub fn insert(&mut self, turn: TurnId, value: T) {
        // Most are alone.
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(1);
        }
        // Turns are drawn before they are added, so one may have been overtaken by the next.
        let at = self.slots.partition_point(|slot| slot.turn < turn);
        match self.slots.get_mut(at).filter(|slot| slot.turn == turn) {
            Some(slot) => self.gaps -= usize::from(slot.value.replace(value).is_none()),
            None => self.slots.insert(at, Slot { turn, value: Some(value) }),
        }
    }

    /// The value of a turn.
    pub fn get(&self, turn: TurnId) -> Option<&T> {
        self.slots.get(self.find(turn)?)?.value.as_ref()
    }

    /// The value of a turn, to change it.
    pub fn get_mut(&mut self, turn: TurnId) -> Option<&mut T> {
        let index = self.find(turn)?;
        self.slots.get_mut(index)?.value.as_mut()
    }

    /// Takes out the value of a turn.
    pub fn remove(&mut self, turn: TurnId) -> Option<T> {
        let index = self.find(turn)?;
        let value = self.slots.get_mut(index)?.value.take()?;
        self.gaps += 1;
        self.close_gaps();
        Some(value)
    }

    /// The value of the first turn.
    pub fn first(&self) -> Option<&T> {
        self.values().next()
    }

    /// All values, in the order of their turns.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }

    /// All values, in the order of their turns, to change them.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    /// All values, in the order of their turns.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().filter_map(|slot| slot.value)
    }

    /// All turns and their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (TurnId, &T)> {
        self.slots.iter().filter_map(|slot| Some((slot.turn, slot.value.as_ref()?)))
    }

    /// Whether there is no turn.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn find(&self, turn: TurnId) -> Option<usize> {
        self.slots.binary_search_by_key(&turn, |slot| slot.turn).ok()
    }

    fn close_gaps(&mut self) {
        let is_gap = |slot: &Slot<T>| slot.value.is_none();
        while self.slots.front().is_some_and(is_gap) {
            self.slots.pop_front();
            self.gaps -= 1;
        }
        while self.slots.back().is_some_and(is_gap) {
            self.slots.pop_back();
            self.gaps -= 1;
        }
        if self.gaps > self.slots.len() / 2 {
            self.slots.retain(|slot| slot.value.is_some());
            self.gaps = 0;
        }
        if self.slots.is_empty() {
            self.slots = VecDeque::new();
        }
    }
}

impl<T> Default for ByTurn<T> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), gaps: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(turns: impl IntoIterator<Item = u64>) -> ByTurn<u64> {
        let mut all = ByTurn::default();
        turns.into_iter().for_each(|turn| all.insert(TurnId(turn), turn));
        all
    }

    fn values(all: &ByTurn<u64>) -> Vec<u64> {
        all.values().copied().collect()
    }

    #[test]
    fn values_keep_the_order_of_their_turns() {
        let mut all = of([1, 3, 2]);
        assert_eq!(values(&all), [1, 2, 3], "it drew its turn before the third");
        assert_eq!(all.remove(TurnId(2)), Some(2));
        assert!(all.remove(TurnId(2)).is_none() && all.get(TurnId(2)).is_none() && all.get_mut(TurnId(4)).is_none());
        all.insert(TurnId(2), 7);
        all.insert(TurnId(2), 8);
        all.values_mut().for_each(|value| *value += 1);
        assert_eq!((values(&all), all.gaps), (vec![2, 9, 4], 0));
        assert_eq!((all.first(), all.get(TurnId(2))), (Some(&2), Some(&9)));
    }

    #[test]
    fn nothing_is_moved_where_nothing_changes() {
        let mut all = of([1, 2]);
        let place = std::ptr::from_ref(&all.slots[0]);
        assert_eq!(all.remove(TurnId(3)), None);
        all.remove(TurnId(2));
        assert_eq!(std::ptr::from_ref(&all.slots[0]), place);
    }

    /// Gaps in the middle are not skipped each time, and values are not moved for each gap.
    #[test]
    fn gaps_are_closed_when_there_are_more_of_them_than_values() {
        let mut all = of(1..=100);
        for turn in 2..=99 {
            all.remove(TurnId(turn));
            assert!(all.gaps * 2 <= all.slots.len() && all.values().count() + all.gaps == all.slots.len());
        }
        assert_eq!(values(&all), [1, 100]);
        all.remove(TurnId(100));
        all.remove(TurnId(1));
        assert!(all.is_empty() && all.slots.capacity() == 0);
    }

    #[test]
    fn one_value_takes_the_room_of_one() {
        assert_eq!(of([1]).slots.capacity(), 1);
    }
}
