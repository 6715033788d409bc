//! A collection that usually has one element, or none.

use smallvec::SmallVec;

/// Values in no order. One needs no list, because there may be many stations, and each has several of these.
#[derive(Debug)]
pub(super) struct Few<T>(SmallVec<[Box<T>; 1]>);

impl<T> Few<T> {
    pub(super) fn push(&mut self, value: Box<T>) {
        self.0.push(value);
    }

    /// Takes out the first value that is like this.
    pub(super) fn take(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<Box<T>> {
        let index = self.iter().position(is_it)?;
        Some(self.0.swap_remove(index))
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter().map(AsRef::as_ref)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(AsMut::as_mut)
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}
