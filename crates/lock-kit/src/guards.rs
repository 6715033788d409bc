//! The guards of a set of locks.

use std::ops::Deref;
use std::time::Duration;

use lock_core::{FencingToken, LockName, Lost, WriteToken};
use lock_host::Proof;

/// The guards of a set of locks. A guard of a set derefs to it.
#[derive(Debug)]
pub struct Guards<G> {
    held: Stack<G>,
    /// The index of each lock of the list among the held ones.
    listed: Vec<usize>,
}

impl<G: Deref<Target = Proof>> Guards<G> {
    /// The guards of locks that were acquired in this order of their indices.
    pub(crate) fn new(held: Stack<G>, order: &[usize]) -> Self {
        let mut listed = vec![0; order.len()];
        order.iter().enumerate().for_each(|(position, &index)| listed[index] = position);
        Self { held, listed }
    }

    /// The guards of the locks, in the order in which the locks were listed.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &G> {
        self.listed.iter().map(|&position| &self.held.0[position])
    }

    /// The name and the token of each lock, in the order in which the locks were listed. A resource checks the token of the lock that
    /// protects it.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = (&LockName, FencingToken)> {
        self.iter().map(|guard| (guard.name(), guard.fencing_token()))
    }

    /// The name of each lock, and the token that raises the fence of its resource, in the order in which the locks were listed. Raise all
    /// fences before you read anything.
    pub fn write_tokens(&self) -> impl ExactSizeIterator<Item = (&LockName, WriteToken)> {
        self.tokens().map(|(name, token)| (name, WriteToken::of_writer(token)))
    }

    /// How much longer all locks are sure to be held without a renewal; zero once one of them is lost.
    pub fn remaining(&self) -> Duration {
        self.iter().map(|guard| guard.remaining()).min().unwrap_or_default()
    }

    /// Whether all locks are still held. Local and cheap: compares their deadlines with the clock.
    ///
    /// # Errors
    /// `Lost`, with the first lock of the list that is not held, and the reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.iter().try_for_each(|guard| guard.check())
    }

    /// The guards, the one that was acquired last first.
    pub(crate) fn backwards(self) -> impl Iterator<Item = G> {
        self.held.backwards()
    }
}

/// Guards in the order in which their locks were acquired. When it is dropped, they are released backwards.
#[derive(Debug)]
pub(crate) struct Stack<G>(Vec<G>);

impl<G> Stack<G> {
    pub(crate) fn push(&mut self, guard: G) {
        self.0.push(guard);
    }

    fn backwards(mut self) -> impl Iterator<Item = G> {
        std::mem::take(&mut self.0).into_iter().rev()
    }
}

impl<G: Deref<Target = Proof>> Stack<G> {
    /// Whether none of the guards has been lost.
    pub(crate) fn is_held(&self) -> bool {
        self.0.iter().all(|guard| guard.check().is_ok())
    }
}

impl<G> Default for Stack<G> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<G> Drop for Stack<G> {
    fn drop(&mut self) {
        while let Some(guard) = self.0.pop() {
            drop(guard);
        }
    }
}
