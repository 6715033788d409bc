//! A collection that usually has one element.

use std::ops::{Deref, DerefMut};

/// Values in no order. A single one, which is the usual case, needs no allocation.
#[derive(Debug)]
pub(super) enum Few<T> {
    /// One value, or none.
    One(Option<T>),
    /// There has been more than one value since the collection was last empty.
    Many(Vec<T>),
}

impl<T> Few<T> {
    pub(super) fn push(&mut self, value: T) {
        match self {
            Self::One(none @ None) => *none = Some(value),
            Self::One(one) => *self = Self::Many(one.take().into_iter().chain([value]).collect()),
            Self::Many(many) => many.push(value),
        }
    }

    /// Takes out the first value that is like this.
    pub(super) fn take(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let index = self.iter().position(is_it)?;
        match self {
            Self::One(one) => one.take(),
            Self::Many(many) => {
                let value = many.swap_remove(index);
                if many.is_empty() {
                    *self = Self::default();
                }
                Some(value)
            }
        }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::One(None)
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => one.as_slice(),
            Self::Many(many) => many,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => one.as_mut_slice(),
            Self::Many(many) => many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_needs_no_room_of_its_own_and_the_room_for_many_is_freed() {
        let mut few = Few::default();
        few.push(1);
        assert!(matches!(few, Few::One(Some(1))));
        few.push(2);
        few.push(3);
        few[0] = 7;
        assert_eq!((few.take(|value| *value == 1), few.take(|value| *value == 7)), (None, Some(7)));
        assert_eq!(few.iter().sum::<i32>(), 5);
        assert_eq!((few.take(|_| true), few.len(), few.take(|_| true)), (Some(3), 1, Some(2)));
        assert!(matches!(few, Few::One(None)) && few.take(|_| true).is_none());
    }
}
