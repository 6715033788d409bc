//! Randomness that is none: each execution draws the same numbers.

use std::io;

use lock_core::{Invalid, Note};

use crate::sync::atomic::{AtomicU64, Ordering};

shuttle::lazy_static! {
    static ref SECRETS: AtomicU64 = AtomicU64::new(0);
}

/// The next secret.
///
/// # Errors
/// None.
pub fn secret() -> io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    secret[..8].copy_from_slice(&SECRETS.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    Ok(secret)
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
