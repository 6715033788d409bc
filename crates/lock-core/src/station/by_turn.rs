//! Values by turn, in the order of the turns.

use std::collections::BTreeMap;
use std::mem;

use super::io::TurnId;

/// A map from turns to values, in the order of the turns. A single value, which is the usual case, needs no allocation.
#[derive(Debug)]
pub enum ByTurn<T> {
    /// One value, or none.
    One(Option<(TurnId, T)>),
    /// There has been more than one value since the map was last empty.
    Many(Box<BTreeMap<TurnId, T>>),
}

impl<T> ByTurn<T> {
    /// Sets the value of a turn.
    pub fn insert(&mut self, turn: TurnId, value: T) {
        match self {
            Self::Many(many) => _ = many.insert(turn, value),
            Self::One(one) if one.as_ref().is_none_or(|(first, _)| *first == turn) => *one = Some((turn, value)),
            Self::One(one) => *self = Self::Many(Box::new(one.take().into_iter().chain([(turn, value)]).collect())),
        }
    }

    /// The value of a turn.
    pub fn get(&self, turn: TurnId) -> Option<&T> {
        match self {
            Self::One(one) => one.as_ref().filter(|(one, _)| *one == turn).map(|(_, value)| value),
            Self::Many(many) => many.get(&turn),
        }
    }

    /// The value of a turn, to change it.
    pub fn get_mut(&mut self, turn: TurnId) -> Option<&mut T> {
        match self {
            Self::One(one) => one.as_mut().filter(|(one, _)| *one == turn).map(|(_, value)| value),
            Self::Many(many) => many.get_mut(&turn),
        }
    }

    /// Removes the value of a turn.
    pub fn remove(&mut self, turn: TurnId) -> Option<T> {
        match self {
            Self::One(one) => one.take_if(|(one, _)| *one == turn).map(|(_, value)| value),
            Self::Many(many) => {
                let value = many.remove(&turn);
                if many.is_empty() {
                    mem::take(self);
                }
                value
            }
        }
    }

    /// How many turns there are.
    pub fn len(&self) -> usize {
        match self {
            Self::One(one) => usize::from(one.is_some()),
            Self::Many(many) => many.len(),
        }
    }

    /// The first turn.
    pub fn first_turn(&self) -> Option<TurnId> {
        Some(self.iter().next()?.0)
    }

    /// The value of the first turn.
    pub fn first(&self) -> Option<&T> {
        Some(self.iter().next()?.1)
    }

    /// All turns and their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (TurnId, &T)> {
        let (one, many) = match self {
            Self::One(one) => (one.as_ref(), None),
            Self::Many(many) => (None, Some(many.iter())),
        };
        let one = one.map(|(turn, value)| (*turn, value));
        one.into_iter().chain(many.into_iter().flatten().map(|(turn, value)| (*turn, value)))
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
        assert!(matches!(all, ByTurn::One(None)), "what it kept for many is freed");
    }
}
