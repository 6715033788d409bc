//! Epochs from this host's randomness.

use std::io;

use lock_core::node::Epoch;
use lock_host::random_u64;

use crate::quorum::EpochSource;

/// Draws epochs from the operating system's random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostEpochs;

impl EpochSource for HostEpochs {
    fn draw(&mut self) -> io::Result<Epoch> {
        random_u64().map(Epoch::from_random)
    }
}
