//! The owners of a station's leases.

use std::fmt;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::Owner;

/// Draws owners from a secret. Some of them tell nothing about the others.
///
/// # Source
/// RFC 8439: each owner is the start of another block of the ChaCha20 key stream.
pub(super) struct Owners {
    secret: [u8; 32],
    /// The block for the next owner. The first one is for the seed.
    block: u64,
}

impl Owners {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self { secret, block: 1 }
    }

    /// A number for jitter, which tells nothing about the owners.
    pub(super) fn seed(&self) -> u64 {
        self.stream(0).next_u64()
    }

    pub(super) fn draw(&mut self) -> Owner {
        let mut bytes = [0; 16];
        self.stream(self.block).fill_bytes(&mut bytes);
        self.block += 1;
        Owner::from_random(bytes)
    }

    fn stream(&self, block: u64) -> ChaCha20Rng {
        let mut stream = ChaCha20Rng::from_seed(self.secret);
        stream.set_block_pos(block);
        stream
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

    /// The first two test vectors of RFC 8439, appendix A.1, are the blocks 0 and 1 under a key of zeros.
    #[test]
    fn owners_are_blocks_of_the_key_stream() {
        let mut owners = Owners::new([0; 32]);
        assert_eq!(owners.seed().to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
        let [first, second] = [owners.draw(), owners.draw()].map(Owner::to_wire);
        assert_eq!(first, "9f07e7be5551387a98ba977c732d080d");
        assert_ne!(first, second);
        assert_eq!(format!("{owners:?}"), "Owners");
    }
}
