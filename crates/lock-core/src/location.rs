//! The location of a lock.

use std::fmt;

/// The store that keeps a lock, and its key there. Neither contains a secret.
///
/// Two locks with the same location are one lock. All clients get the same location for a lock, so it is what a set of
/// locks is ordered by: clients that acquire locks in this order cannot wait for each other in a circle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The store, such as `redis://db1:6379/0` or `sqlite:/var/lib/shop/locks.db`.
    pub store: String,
    /// The key of the lock in that store: its name, after the prefix if there is one.
    pub key: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.key, self.store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_ordered_by_store_and_then_by_key() {
        let at = |store: &str, key: &str| Location { store: store.to_owned(), key: key.to_owned() };
        let mut all = [at("b", "a"), at("a", "b"), at("a", "a")];
        all.sort();
        assert_eq!(all.map(|location| location.to_string()), ["a in a", "b in a", "a in b"]);
    }
}
