//! Randomness that is none: each execution draws the same numbers.

use std::io;

use lock_core::{Invalid, Note, Owner};

use crate::sync::atomic::{AtomicU64, Ordering};

/// Owners that count up.
#[derive(Debug, Default)]
pub struct Owners(AtomicU64);

impl Owners {
    /// The next owner.
    ///
    /// # Errors
    /// None.
    pub fn draw<T>(&self, _whom: &T) -> io::Result<Owner> {
        let number = u128::from(self.0.fetch_add(1, Ordering::Relaxed));
        // Far apart, since a waiter's next attempts count up from its owner.
        Ok(Owner::from_random((number << 64).to_be_bytes()))
    }
}

/// A number.
///
/// # Errors
/// None.
pub fn random_u64() -> io::Result<u64> {
    Ok(7)
}

/// A note.
///
/// # Errors
/// Those of [`Note::new`].
pub fn note(why: &str) -> Result<Note, Invalid> {
    Note::new("here", 1, why)
}
