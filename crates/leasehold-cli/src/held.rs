//! `LEASEHOLD_HELD`: which locks the ancestors of this process hold.

use lock_core::LockName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::store::Store;

/// The environment variable: `NAME@STORE` for each lock, percent-encoded, with `:` between them.
pub(crate) const HELD: &str = "LEASEHOLD_HELD";

/// Everything but these is encoded, so that neither `:` nor `@` can be mistaken.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The locks that this process's ancestors hold by `leasehold run`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(Vec<String>);

impl Held {
    /// Reads the environment.
    pub(crate) fn from_env() -> Self {
        Self::parse(&std::env::var(HELD).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        Self(text.split(':').filter(|entry| !entry.is_empty()).map(str::to_owned).collect())
    }

    /// Whether an ancestor holds this lock: waiting for it would never end.
    pub(crate) fn contains(&self, name: &LockName, store: &Store) -> bool {
        self.0.contains(&entry(name, store))
    }

    /// The value for a child that holds one lock more.
    pub(crate) fn with(&self, name: &LockName, store: &Store) -> String {
        let mut all = self.0.clone();
        all.push(entry(name, store));
        all.join(":")
    }
}

fn entry(name: &LockName, store: &Store) -> String {
    let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    format!("{}@{}", encode(name.as_str()), encode(&store.identity()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_in_the_same_store_only() {
        let here = Store::choose(Some("sqlite:/a")).unwrap();
        let there = Store::choose(Some("sqlite:/b")).unwrap();
        let (outer, inner): (LockName, LockName) = ("a:b@c %".parse().unwrap(), "a".parse().unwrap());
        let once = Held::default().with(&outer, &here);
        let twice = Held::parse(&once).with(&inner, &here);
        let held = Held::parse(&twice);
        assert!(held.contains(&outer, &here) && held.contains(&inner, &here));
        assert!(!held.contains(&outer, &there));
        assert!(!Held::parse(&once).contains(&inner, &here));
        assert_eq!(once, "a%3Ab%40c%20%25@sqlite%3A%2Fa");
    }
}
