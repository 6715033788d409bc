//! `LEASEHOLD_HELD`: which locks the ancestors of this process held when it was started.

use leasehold::inspect::Entry;
use leasehold::{FencingToken, LockName};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::holders::spans;

/// The environment variable: `NAME@TOKEN` for each lock, the name percent-encoded, with `:` between them.
pub(crate) const HELD: &str = "LEASEHOLD_HELD";

/// Everything else is encoded, so `:` and `@` are unambiguous.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The locks that this process's ancestors held through `leasehold run`.
///
/// Processes that a job leaves running inherit the variable and outlive the lock. So the name alone proves nothing: an
/// ancestor holds the lock if the store still shows the token. That also covers different spellings of one store's URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(Vec<String>);

impl Held {
    /// Reads the environment.
    pub(crate) fn from_env() -> Self {
        Self::parse(&std::env::var(HELD).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        Self(text.split(':').filter(|entry| !entry.is_empty()).map(str::to_owned).collect())
    }

    /// Whether an ancestor held a lock of this name, in any store.
    pub(crate) fn mentions(&self, name: &LockName) -> bool {
        let start = format!("{}@", encoded(name));
        self.0.iter().any(|entry| entry.starts_with(&start))
    }

    /// Whether an ancestor holds the lock of this name that a store shows: waiting for it could deadlock.
    pub(crate) fn includes(&self, name: &LockName, shown: &Entry) -> bool {
        let start = format!("{}@", encoded(name));
        let mut tokens =
            self.0.iter().filter_map(|entry| FencingToken::new(entry.strip_prefix(&start)?.parse().ok()?).ok());
        tokens.any(|token| shown.holders.iter().any(|held| spans(held, token)))
    }

    /// The value for a child that also holds this lock.
    pub(crate) fn with(&self, name: &LockName, token: FencingToken) -> String {
        let mut all = self.0.clone();
        all.push(format!("{}@{token}", encoded(name)));
        all.join(":")
    }
}

fn encoded(name: &LockName) -> String {
    utf8_percent_encode(name.as_str(), ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use leasehold::Holder;
    use leasehold::backend::TokenRange;
    use leasehold::inspect::Note;

    use super::*;

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).unwrap()
    }

    fn shown(name: &LockName, low: u64, high: u64) -> Entry {
        let tokens = TokenRange::new(token(low), token(high)).unwrap();
        let holder = Holder::Leasehold { tokens, note: Note::new("h", 1, "").unwrap() };
        Entry::exclusive(name.clone(), holder, None, 0)
    }

    #[test]
    fn a_lock_is_held_above_while_the_store_shows_its_token() {
        let (outer, inner): (LockName, LockName) = ("a:b@c %".parse().unwrap(), "a".parse().unwrap());
        let once = Held::default().with(&outer, token(7));
        assert_eq!(once, "a%3Ab%40c%20%25@7");
        let held = Held::parse(&Held::parse(&once).with(&inner, token(9)));
        assert!(held.mentions(&outer) && held.mentions(&inner) && !Held::parse(&once).mentions(&inner));
        assert!(held.includes(&outer, &shown(&outer, 6, 8)) && held.includes(&inner, &shown(&inner, 9, 9)));
        assert!(!held.includes(&outer, &shown(&outer, 8, 8)), "somebody else's by now");
        assert!(!held.includes(&outer, &shown(&outer, 9, 9)), "the token of another lock");
        let foreign = Entry::exclusive(inner.clone(), Holder::Foreign, None, 0);
        assert!(!held.includes(&inner, &foreign));
        assert!(!Held::parse("a@sqlite%3A%2Fa").includes(&inner, &shown(&inner, 9, 9)), "of another version");
    }
}
