//! What the naive locks and the account ask of a store: numbers under keys, one request at a time.
//!
//! Each request is atomic by itself. What races is what lies between two of them.

mod redis;
mod sqlite;

use std::path::PathBuf;
use std::time::Duration;

use lock_core::FencingToken;
use serde::{Deserialize, Serialize};

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

/// Where the numbers are. Holds a URL that may hold a password, so it has no `Debug` and goes through pipes only.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Place {
    /// In a SQLite file.
    Sqlite(PathBuf),
    /// In the Redis of this URL.
    Redis(String),
}

impl Place {
    /// Opens one more connection.
    pub(crate) fn open(&self) -> Result<Box<dyn Raw>, Failure> {
        Ok(match self {
            Self::Sqlite(path) => Box::new(sqlite::File::open(path)?),
            Self::Redis(url) => Box::new(redis::Server::connect(url)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use test_support::RedisServer;

    use super::*;

    /// What is promised of every place, seen through two connections.
    fn keeps_its_promises(place: &Place) {
        let (mut one, mut two) = (place.open().unwrap(), place.open().unwrap());
        assert_eq!(one.get("a").unwrap(), None);
        one.set("a", 1).unwrap();
        assert_eq!(two.get("a").unwrap(), Some(1));
        assert!(!two.set_if_absent("a", 2, None).unwrap());
        assert!(!two.compare_and_delete("a", 2).unwrap());
        assert!(two.compare_and_delete("a", 1).unwrap());
        assert!(two.set_if_absent("a", 2, None).unwrap());
        assert_eq!((one.delete("a").unwrap(), one.delete("a").unwrap()), (Some(2), None));
    }

    fn forgets_what_has_expired(place: &Place) {
        let mut raw = place.open().unwrap();
        assert!(raw.set_if_absent("b", 1, Some(Duration::from_millis(50))).unwrap());
        while raw.get("b").unwrap().is_some() {
            assert!(!raw.compare_and_delete("b", 2).unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!raw.compare_and_delete("b", 1).unwrap());
        assert_eq!(raw.delete("b").unwrap(), None);
        assert!(raw.set_if_absent("b", 2, Some(Duration::from_secs(60))).unwrap());
        assert!(!raw.set_if_absent("b", 3, None).unwrap());
    }

    fn refuses_lower_tokens(place: &Place) {
        let mut raw = place.open().unwrap();
        let mut write = |value, token| {
            let fence = Fence { key: "f", token: FencingToken::new(token).unwrap() };
            raw.set_fenced("c", value, fence).unwrap()
        };
        let high = FencingToken::MAX.get();
        assert!(write(1, 7) && write(2, 7) && write(3, high));
        assert!(!write(4, high - 1) && !write(5, 1));
        assert_eq!(raw.get("c").unwrap(), Some(3));
        assert_eq!(raw.get("f").unwrap(), Some(high));
    }

    fn all(place: &Place) {
        keeps_its_promises(place);
        forgets_what_has_expired(place);
        refuses_lower_tokens(place);
    }

    #[test]
    fn a_file_keeps_its_promises() {
        let directory = test_support::temp_dir();
        all(&Place::Sqlite(directory.path().join("raw.db")));
    }

    #[test]
    fn redis_keeps_its_promises() {
        let server = RedisServer::start();
        all(&Place::Redis(server.url() + "/1?prefix=a&op_timeout=1s"));
        assert!(server.command::<String>(&["INFO", "keyspace"]).contains("db1:"));
    }
}
