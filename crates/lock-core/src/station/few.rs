//! A collection that usually has one element, or none.

/// Values in no order. Small, because there may be many stations, and each has several of these.
#[derive(Debug)]
#[expect(clippy::box_collection, reason = "a list takes more space than a pointer, and is rare")]
pub(super) enum Few<T> {
    /// One value, or none.
    One(Option<Box<T>>),
    /// There has been more than one value since the collection was last empty.
    Many(Box<Vec<Box<T>>>),
}

impl<T> Few<T> {
    pub(super) fn push(&mut self, value: Box<T>) {
        match self {
            Self::One(none @ None) => *none = Some(value),
            Self::One(one) => *self = Self::Many(Box::new(one.take().into_iter().chain([value]).collect())),
            Self::Many(many) => many.push(value),
        }
    }

    /// Takes out the first value that is like this.
    pub(super) fn take(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<Box<T>> {
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

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        let all = match self {
            Self::One(one) => one.as_slice(),
            Self::Many(many) => many,
        };
        all.iter().map(AsRef::as_ref)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let all = match self {
            Self::One(one) => one.as_mut_slice(),
            Self::Many(many) => many,
        };
        all.iter_mut().map(AsMut::as_mut)
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut T> {
        self.iter_mut().next()
    }

    pub(super) fn len(&self) -> usize {
        self.iter().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::One(None))
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::One(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_needs_no_list_and_that_of_many_is_freed() {
        let mut few = Few::default();
        let take = |few: &mut Few<i32>, wanted| few.take(|value| *value == wanted).map(|value| *value);
        few.push(Box::new(1));
        assert!(matches!(few, Few::One(Some(_))));
        few.push(Box::new(2));
        few.push(Box::new(3));
        few.iter_mut().take(1).for_each(|first| *first = 7);
        assert_eq!((take(&mut few, 1), take(&mut few, 7)), (None, Some(7)));
        assert_eq!(few.iter().sum::<i32>(), 5);
        assert_eq!((take(&mut few, 3), few.len(), take(&mut few, 2)), (Some(3), 1, Some(2)));
        assert!(matches!(few, Few::One(None)) && take(&mut few, 2).is_none());
        assert_eq!(size_of::<Few<[u8; 100]>>(), 16);
    }
}
