//! Where the numbers of a scene are stored: a file or a server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::raw::Raw;
use super::raw::redis::Server;
use super::raw::sqlite::File;
use crate::shared::failure::Failure;

/// Where the numbers are. The URL may contain a password, so this has no `Debug` and is passed through pipes only.
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
            Self::Sqlite(path) => Box::new(File::open(path)?),
            Self::Redis(url) => Box::new(Server::connect(url)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::FencingToken;
    use test_support::bounds::wait_for;
    use test_support::{RedisServer, signals};

    use super::*;
    use crate::shared::raw::Fence;

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

    fn renews_what_has_not_expired(place: &Place) {
        let mut raw = place.open().unwrap();
        assert_eq!(raw.renew("d", Duration::from_secs(60)).unwrap(), None);
        raw.set("d", 7).unwrap();
        assert_eq!(raw.renew("d", Duration::from_millis(50)).unwrap(), Some(7));
        wait_for("the number to expire", || raw.get("d").unwrap().is_none().then_some(()));
        assert_eq!(raw.renew("d", Duration::from_secs(60)).unwrap(), None);
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
        renews_what_has_not_expired(place);
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
        // Tests of this process end and resume children, and a read with a time limit is not resumed after a signal.
        signals::keep_from_this_thread();
        all(&Place::Redis(server.url() + "/1?prefix=a&op_timeout=1s"));
        assert!(server.command::<String>(&["INFO", "keyspace"]).contains("db1:"));
    }
}
