//! What rustls needs of a process.

use rustls::crypto::{CryptoProvider, ring};

/// Chooses a provider of cryptography if the program has not chosen one: without one, rustls panics, for instance if crates bring two.
pub fn choose_provider() {
    if CryptoProvider::get_default().is_none() {
        // If another thread chooses at the same time, its choice is as good.
        ring::default_provider().install_default().ok();
    }
}
