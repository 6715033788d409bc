//! What the naive locks and the account ask of a store: numbers under keys, one request at a time.
//!
//! Each request is atomic by itself. What races is what lies between two of them.

pub(super) mod redis;
pub(super) mod sqlite;

use std::time::Duration;

use lock_core::FencingToken;

use crate::exit::Failure;

/// One connection to a store of numbers under keys.
///
/// # Errors
/// Every request fails where the store cannot be reached or refuses.
pub(crate) trait Raw: Send {
    /// The number under a key, unless there is none or it has expired.
    fn get(&mut self, key: &str) -> Result<Option<u64>, Failure>;

    /// Puts a number there, for ever, whatever was there.
    fn set(&mut self, key: &str, value: u64) -> Result<(), Failure>;

    /// Puts a number there if there is none, for so long or for ever; says whether it did.
    fn set_if_absent(&mut self, key: &str, value: u64, expiry: Option<Duration>) -> Result<bool, Failure>;

    /// Deletes what is there, and says what it was.
    fn delete(&mut self, key: &str) -> Result<Option<u64>, Failure>;

    /// Deletes what is there if it is this number; says whether it did.
    fn compare_and_delete(&mut self, key: &str, value: u64) -> Result<bool, Failure>;

    /// Puts a number there and keeps the token, unless a higher token was kept before; says whether it did.
    fn set_fenced(&mut self, key: &str, value: u64, fence: Fence<'_>) -> Result<bool, Failure>;
}

/// A token, and the key under which the highest one is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence<'a> {
    pub(crate) key: &'a str,
    pub(crate) token: FencingToken,
}
