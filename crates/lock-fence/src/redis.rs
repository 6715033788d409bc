//! The check in Redis: one script for each kind of write, over any connection of redis-rs.
//!
//! The fence is a key beside the value, in the same slot of a cluster. It is the decimal number of the highest token that it
//! was raised to or written with, never expires, and stays when the value is deleted. If it is deleted, or evicted, earlier holders may write again:
//! set `maxmemory-policy noeviction`.
//!
//! | the key of the value | the key of its fence |
//! |---|---|
//! | `K`, without a hash tag | `leasehold:{K}:fence` |
//! | `K`, with a hash tag, such as `{user:7}:cart` | `leasehold:fence:K` |

mod keys;
mod request;
mod scripts;

use std::time::Duration;

use lock_core::{FencingToken, Invalid, WriteToken};

use ::redis::ToSingleRedisArg;

use self::keys::Keys;
use self::scripts::{DEL, HSET, RAISE, READ, SET};

pub use self::request::{FencedError, Request};

/// The longest expiry. Chosen: no server refuses it, with its clock added; a refusal would come after the fence was raised.
const EXPIRY_MAX_MS: u64 = 1 << 52;

/// A key whose writes carry fencing tokens.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use lock_core as leasehold;
/// # use lock_fence as fence;
/// use fence::redis::{Fenced, FencedError};
/// # let [paused, token] = [33, 34].map(|number| leasehold::FencingToken::new(number).unwrap());
/// # let write_token = leasehold::WriteToken::of_writer(token);
///
/// let mut redis = redis::Client::open("redis://127.0.0.1")?.get_connection()?;
/// let config = Fenced::new("config:7")?;
/// config.raise(write_token).run(&mut redis)?; // guard.write_token(): before anything is read
/// let before: Option<String> = config.get(token).run(&mut redis)?;
/// config.set(token, "new").run(&mut redis)?; // token = guard.fencing_token()
/// let late = config.set(paused, "old").run(&mut redis);
/// assert!(matches!(late, Err(FencedError::Refused(refused)) if refused.highest == token));
/// # Ok(())
/// # }
/// ```
///
/// A lock without a prefix is stored at the key of its name: in the same database, the value needs another key.
///
/// Every program that writes to the key must do so through this, or in the same layout: a plain `SET` is not checked.
#[derive(Clone, Debug)]
pub struct Fenced(Keys);

impl Fenced {
    /// The value at this key. Nothing is asked of the server.
    ///
    /// A key with a `}`, but without a hash tag, works on one server only: a cluster refuses it, because no other key is sure to
    /// be in its slot.
    ///
    /// # Errors
    /// `Invalid` if the key is empty or begins with `leasehold:`.
    pub fn new(key: &str) -> Result<Self, Invalid> {
        Keys::of(key).map(Self)
    }

    /// The key of the fence.
    pub fn fence_key(&self) -> &str {
        &self.0.fence
    }

    /// Raises the fence to the token of a new holder. Do this **before you read** what you will change: until then, an earlier holder
    /// can still write, and what it writes between your read and your write is lost. The value need not exist.
    ///
    /// Read from the server that answered: a replica may not have the last write yet.
    pub fn raise(&self, token: WriteToken) -> Request<()> {
        Request::new(&RAISE, &self.0, token.into())
    }

    /// Sets the value, which may have had any type, and removes its expiry.
    pub fn set(&self, token: FencingToken, value: impl ToSingleRedisArg) -> Request<()> {
        Request::new(&SET, &self.0, token).arg(value)
    }

    /// Sets the value, which may have had any type, and lets it expire after this time, in whole milliseconds, at least one and at
    /// most 2^52 (140,000 years). The fence stays.
    pub fn set_for(&self, token: FencingToken, value: impl ToSingleRedisArg, expiry: Duration) -> Request<()> {
        let millis = u64::try_from(expiry.as_millis()).unwrap_or(u64::MAX);
        self.set(token, value).arg(millis.clamp(1, EXPIRY_MAX_MS))
    }

    /// Sets fields of a hash, as pairs, and answers how many of them are new.
    pub fn hset<F: ToSingleRedisArg, V: ToSingleRedisArg>(
        &self,
        token: FencingToken,
        fields: &[(F, V)],
    ) -> Request<u64> {
        fields.iter().fold(Request::new(&HSET, &self.0, token), |request, (field, value)| request.arg(field).arg(value))
    }

    /// Deletes the value, and answers whether there was one. The fence stays.
    pub fn del(&self, token: FencingToken) -> Request<bool> {
        Request::new(&DEL, &self.0, token)
    }

    /// Reads the value, if no later holder has raised the fence. Changes nothing, so it can have the token of a read guard.
    pub fn get<T>(&self, token: FencingToken) -> Request<Option<T>> {
        Request::new(&READ, &self.0, token).arg("GET")
    }

    /// Reads a field of a hash, if no later holder has raised the fence. Changes nothing.
    pub fn hget<T>(&self, token: FencingToken, field: impl ToSingleRedisArg) -> Request<Option<T>> {
        Request::new(&READ, &self.0, token).arg("HGET").arg(field)
    }
}
