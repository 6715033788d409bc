//! Values by turn, in the order of the turns.

use std::collections::VecDeque;

use super::io::TurnId;

/// A map from turns to values, in the order of the turns.
///
/// Looking up, appending and removing are cheap at any size. A single value, which is the usual case, needs no
/// allocation.
#[derive(Debug)]
pub enum ByTurn<T> {
    /// One value, or none.
    One(Option<(TurnId, T)>),
    /// There has been more than one value since the map was last empty.
    Many(Box<Slots<T>>),
}

/// The values of several turns.
#[derive(Debug)]
pub struct Slots<T> {
    /// A value that is removed from the middle leaves a gap. There are never more gaps than values, and none at either
    /// end.
    slots: VecDeque<(TurnId, Option<T>)>,
    gaps: usize,
}

impl<T> ByTurn<T> {
    /// Sets the value of a turn.
    pub fn insert(&mut self, turn: TurnId, value: T) {
        match self {
            Self::Many(many) => many.insert(turn, value),
            Self::One(first) => match first.take_if(|(first, _)| *first != turn) {
                None => *first = Some((turn, value)),
                Some(first) => {
                    let mut many = Box::new(Slots { slots: VecDeque::from([(first.0, Some(first.1))]), gaps: 0 });
                    many.insert(turn, value);
                    *self = Self::Many(many);
                }
            },
        }
    }

    /// The value of a turn.
    pub fn get(&self, turn: TurnId) -> Option<&T> {
        match self {
            Self::One(one) => one.as_ref().filter(|(one, _)| *one == turn).map(|(_, value)| value),
            Self::Many(many) => many.slots.get(many.find(turn)?)?.1.as_ref(),
        }
    }

    /// The value of a turn, to change it.
    pub fn get_mut(&mut self, turn: TurnId) -> Option<&mut T> {
        match self {
            Self::One(one) => one.as_mut().filter(|(one, _)| *one == turn).map(|(_, value)| value),
            Self::Many(many) => {
                let index = many.find(turn)?;
                many.slots.get_mut(index)?.1.as_mut()
            }
        }
    }

    /// Removes the value of a turn.
    pub fn remove(&mut self, turn: TurnId) -> Option<T> {
        match self {
            Self::One(one) => one.take_if(|(one, _)| *one == turn).map(|(_, value)| value),
            Self::Many(many) => {
                let value = many.remove(turn);
                if many.slots.is_empty() {
                    *self = Self::default();
                }
                value
            }
        }
    }

    /// How many turns there are.
    pub fn len(&self) -> usize {
        match self {
            Self::One(one) => usize::from(one.is_some()),
            Self::Many(many) => many.slots.len() - many.gaps,
        }
    }

    /// The first turn.
    pub fn first_turn(&self) -> Option<TurnId> {
        match self {
            Self::One(one) => one.as_ref().map(|(turn, _)| *turn),
            Self::Many(many) => many.slots.front().map(|(turn, _)| *turn),
        }
    }

    /// The value of the first turn.
    pub fn first(&self) -> Option<&T> {
        match self {
            Self::One(one) => one.as_ref().map(|(_, value)| value),
            Self::Many(many) => many.slots.front()?.1.as_ref(),
        }
    }

    /// All turns and their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (TurnId, &T)> {
        let (one, many) = match self {
            Self::One(one) => (one.as_ref(), None),
            Self::Many(many) => (None, Some(&many.slots)),
        };
        let one = one.map(|(turn, value)| (*turn, value));
        one.into_iter().chain(many.into_iter().flatten().filter_map(|(turn, value)| Some((*turn, value.as_ref()?))))
    }

    /// Whether there is no turn.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::One(None))
    }
}

impl<T> Default for ByTurn<T> {
    fn default() -> Self {
        Self::One(None)
    }
}

impl<T> Slots<T> {
    fn insert(&mut self, turn: TurnId, value: T) {
        if self.slots.back().is_none_or(|(last, _)| *last < turn) {
            return self.slots.push_back((turn, Some(value)));
        }
        // A turn gets its number before it is added here, so a later one may have come first.
        let at = self.slots.partition_point(|(other, _)| *other < turn);
        match self.slots.get_mut(at).filter(|(other, _)| *other == turn) {
            Some((_, slot)) => self.gaps -= usize::from(slot.replace(value).is_none()),
            None => self.slots.insert(at, (turn, Some(value))),
        }
    }

    fn find(&self, turn: TurnId) -> Option<usize> {
        // A reader that comes and goes while others read is the last one.
        match self.slots.back() {
            Some((last, _)) if *last == turn => Some(self.slots.len() - 1),
            _ => self.slots.binary_search_by_key(&turn, |(other, _)| *other).ok(),
        }
    }

    /// The value is passed on as it is: to take it out of its option and put it into another would copy it again.
    fn remove(&mut self, turn: TurnId) -> Option<T> {
        let index = self.find(turn)?;
        let value = self.slots.get_mut(index)?.1.take();
        self.gaps += usize::from(value.is_some());
        self.close_gaps();
        value
    }

    fn close_gaps(&mut self) {
        if self.gaps == 0 {
            return;
        }
        let is_gap = |slot: &(TurnId, Option<T>)| slot.1.is_none();
        while self.slots.front().is_some_and(is_gap) {
            self.slots.pop_front();
            self.gaps -= 1;
        }
        while self.slots.back().is_some_and(is_gap) {
            self.slots.pop_back();
            self.gaps -= 1;
        }
        if self.gaps > self.slots.len() / 2 {
            self.slots.retain(|(_, value)| value.is_some());
            self.gaps = 0;
        }
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
        all.iter().map(|(_, value)| *value).collect()
    }

    #[test]
    fn one_value_needs_no_room_of_its_own() {
        let mut all = of([1]);
        assert!(matches!(all, ByTurn::One(_)) && all.first() == Some(&1));
        all.insert(TurnId(1), 2);
        *all.get_mut(TurnId(1)).unwrap() += 1;
        assert_eq!((all.get(TurnId(1)), all.get(TurnId(2))), (Some(&3), None));
        assert!(all.get_mut(TurnId(2)).is_none() && all.remove(TurnId(2)).is_none());
        assert_eq!(all.remove(TurnId(1)), Some(3));
        assert!(all.is_empty() && all.remove(TurnId(1)).is_none() && all.first().is_none());
    }

    #[test]
    fn values_keep_the_order_of_their_turns() {
        let mut all = of([1, 3, 2]);
        assert_eq!(values(&all), [1, 2, 3], "it drew its turn before the third");
        assert_eq!(all.remove(TurnId(2)), Some(2));
        assert!(all.remove(TurnId(2)).is_none() && all.get(TurnId(2)).is_none() && all.get_mut(TurnId(4)).is_none());
        all.insert(TurnId(2), 7);
        all.insert(TurnId(2), 8);
        *all.get_mut(TurnId(2)).unwrap() += 1;
        assert_eq!((values(&all), all.first(), all.get(TurnId(2))), (vec![1, 9, 3], Some(&1), Some(&9)));
        for turn in [3, 1, 2] {
            assert!(!all.is_empty() && all.remove(TurnId(turn)).is_some());
        }
        assert!(all.is_empty());
    }

    /// Gaps in the middle are not skipped each time, and values are not moved for each gap.
    #[test]
    fn gaps_are_closed_when_there_are_more_of_them_than_values() {
        let mut all = of(1..=100);
        for turn in 2..=99 {
            all.remove(TurnId(turn));
            let ByTurn::Many(many) = &all else { panic!("{all:?}") };
            assert!(many.gaps * 2 <= many.slots.len() && values(&all).len() + many.gaps == many.slots.len());
        }
        assert_eq!(values(&all), [1, 100]);
        all.remove(TurnId(100));
        all.remove(TurnId(1));
        assert!(matches!(all, ByTurn::One(None)), "what it kept for many is freed");
    }
}
