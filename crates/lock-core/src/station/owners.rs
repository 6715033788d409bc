//! The owners of the leases of a client.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::Owner;

/// Draws the owners of leases, for all stations of a client. Some of them tell nothing about the others.
///
/// # Source
/// RFC 8439: all of them are parts of one ChaCha20 key stream.
pub struct Owners(Mutex<ChaCha20Rng>);

impl Owners {
    /// Draws from `secret`, which must come from a cryptographic random source and be used for nothing else.
    pub fn new(secret: [u8; 32]) -> Self {
        Self(Mutex::new(ChaCha20Rng::from_seed(secret)))
    }

    /// A number for jitter, which tells nothing about the owners.
    pub(super) fn seed(&self) -> u64 {
        self.stream().next_u64()
    }

    pub(super) fn draw(&self) -> Owner {
        let mut bytes = [0; 16];
        self.stream().fill_bytes(&mut bytes);
        Owner::from_random(bytes)
    }

    fn stream(&self) -> MutexGuard<'_, ChaCha20Rng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owners")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test vector of RFC 8439, appendix A.1, is the first block under a key of zeros.
    #[test]
    fn owners_are_parts_of_the_key_stream() {
        let owners = Owners::new([0; 32]);
        assert_eq!(owners.seed().to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
        let [first, second] = [owners.draw(), owners.draw()].map(Owner::to_wire);
        assert_eq!(first, "405d6ae55386bd28bdd219b8a08ded1a");
        assert_ne!(first, second);
        assert_eq!(format!("{owners:?}"), "Owners");
    }
}
