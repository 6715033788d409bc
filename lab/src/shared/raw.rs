//! The store as the naive locks and the account use it: numbers under keys, one request at a time.
//!
//! Each request is atomic. Races happen between two requests.

pub(super) mod redis;
pub(super) mod sqlite;

use std::time::Duration;

use leasehold::FencingToken;

use crate::shared::failure::Failure;

/// One connection to a store of numbers under keys.
///
/// # Errors
/// Every request fails where the store cannot be reached or refuses.
pub(crate) trait Raw: Send {
    /// The number under a key, unless there is none or it has expired.
    fn get(&mut self, key: &str) -> Result<Option<u64>, Failure>;

    /// Sets a number without expiry, unconditionally.
    fn set(&mut self, key: &str, value: u64) -> Result<(), Failure>;

    /// Sets a number if there is none, with this expiry or none; says whether it did.
    fn set_if_absent(&mut self, key: &str, value: u64, expiry: Option<Duration>) -> Result<bool, Failure>;

    /// Gives the number a new expiry, unconditionally, and returns it.
    fn renew(&mut self, key: &str, expiry: Duration) -> Result<Option<u64>, Failure>;

    /// Deletes the number, and returns it.
    fn delete(&mut self, key: &str) -> Result<Option<u64>, Failure>;

    /// Deletes the number if it is this one; says whether it did.
    fn compare_and_delete(&mut self, key: &str, value: u64) -> Result<bool, Failure>;

    /// Stores the token, unless a higher one is stored; says whether it did.
    fn raise(&mut self, fence: Fence<'_>) -> Result<bool, Failure>;

    /// Sets a number and stores the token, unless a higher token is stored; says whether it did.
    fn set_fenced(&mut self, key: &str, value: u64, fence: Fence<'_>) -> Result<bool, Failure>;
}

/// A token, and the key of the highest one so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence<'a> {
    pub(crate) key: &'a str,
    pub(crate) token: FencingToken,
}
