//! The keys, and the value of a held lock: `lh1:OWNER:LOW:HIGH:NOTE`.

use std::str::FromStr;

use lock_core::{FencingToken, Holder, Invalid, Lease, LockName, Note, Owner, TokenRange};

/// How every value of ours begins: the layout and its version.
const LAYOUT: &str = "lh1:";

/// The one counter of fencing tokens of this database, the same under every prefix.
pub(crate) const COUNTER: &str = "leasehold:counter";
/// The `run_id` of the server that the counter was last verified against.
pub(crate) const MARKER: &str = "leasehold:marker";

/// What stands before the names of locks, with a colon between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix(Option<String>);

impl Prefix {
    /// The longest prefix, in bytes. Chosen: as short as any sensible one, so that keys stay short.
    const BYTES_MAX: usize = 100;

    pub(crate) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The key of a lock.
    pub(crate) fn key(&self, name: &LockName) -> String {
        match &self.0 {
            Some(prefix) => format!("{prefix}:{name}"),
            None => name.as_str().to_owned(),
        }
    }

    /// The lock of a key; `None` for a key that is no lock under this prefix.
    pub(crate) fn name(&self, key: &[u8]) -> Option<LockName> {
        let key = std::str::from_utf8(key).ok()?;
        match &self.0 {
            Some(prefix) => key.strip_prefix(prefix)?.strip_prefix(':')?.parse().ok(),
            None => key.parse().ok(),
        }
    }

    /// A pattern for `SCAN` that matches at least the keys of the locks that the glob matches.
    pub(crate) fn scan_pattern(&self, glob: &str) -> String {
        let mut pattern = self.0.as_ref().map_or_else(String::new, |prefix| format!("{}:", literal(prefix)));
        for c in glob.chars() {
            match c {
                // Redis' `?` is one byte, ours one character.
                '*' | '?' => pattern.push('*'),
                other => pattern.push_str(&literal(other.encode_utf8(&mut [0; 4]))),
            }
        }
        pattern
    }
}

fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for c in text.chars() {
        if "*?[]^-\\".contains(c) {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal
}

impl FromStr for Prefix {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let problem = if text.is_empty() || text.len() > Self::BYTES_MAX {
            "it does not have 1 to 100 bytes"
        } else if text.chars().any(char::is_control) {
            "it holds a control character"
        } else if text == "leasehold" || text.starts_with(LockName::RESERVED_PREFIX) {
            "keys that begin with \"leasehold:\" are reserved"
        } else {
            return Ok(Self(Some(text.to_owned())));
        };
        Err(Invalid::new("prefix", text, problem, "give a short word such as prefix=shop, for keys such as shop:NAME"))
    }
}

/// The key that says that an owner's claims to a lock were given up.
pub(crate) fn tombstone(key: &str, owner: Owner) -> String {
    format!("leasehold:{{{key}}}:t:{}", owner.to_wire())
}

/// How the value of this owner's lease begins, whatever its tokens.
pub(crate) fn of_owner(owner: Owner) -> String {
    format!("{LAYOUT}{}:", owner.to_wire())
}

/// How the value of this lease begins.
pub(crate) fn of_lease(lease: &Lease) -> String {
    format!("{}{}:{}:", of_owner(lease.owner), lease.tokens.low(), lease.tokens.high())
}

/// What a value of ours says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) owner: Owner,
    pub(crate) tokens: TokenRange,
    pub(crate) note: Note,
}

impl Stored {
    /// Reads a value; `None` for one that is not ours.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(value);
        let mut parts = text.strip_prefix(LAYOUT)?.splitn(4, ':');
        let owner = parts.next()?.parse().ok()?;
        let low = token(parts.next()?)?;
        let high = token(parts.next()?)?;
        let note = Note::from_wire(parts.next()?);
        Some(Self { owner, tokens: TokenRange::new(low, high).ok()?, note })
    }

    /// Who holds the lock, for people.
    pub(crate) fn holder(value: &[u8]) -> Holder {
        Self::read(value).map_or(Holder::Foreign, |Self { tokens, note, .. }| Holder::Leasehold { tokens, note })
    }
}

fn token(digits: &str) -> Option<FencingToken> {
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_and_others_are_foreign() {
        let owner = Owner::from_random([0xab; 16]);
        let value = format!("{}7:9:4711@web-3 nightly: report", of_owner(owner));
        assert_eq!(value, "lh1:abababababababababababababababab:7:9:4711@web-3 nightly: report");
        let stored = Stored::read(value.as_bytes()).unwrap();
        assert_eq!((stored.owner, stored.tokens.to_string().as_str()), (owner, "7..9"));
        assert_eq!(stored.note.why(), "nightly: report");
        for foreign in ["", "lh1:", "lh1:abc:1:1:x", "lh2:abababababababababababababababab:7:9:x", "c2VjcmV0"] {
            assert_eq!(Stored::holder(foreign.as_bytes()), Holder::Foreign, "{foreign}");
        }
        for damaged in ["9:7:x", "0:1:x", "1:9007199254740992:x", "1:2", "-1:2:x"] {
            let value = format!("{}{damaged}", of_owner(owner));
            assert_eq!(Stored::read(value.as_bytes()), None, "{damaged}");
        }
        assert_eq!(Stored::holder(b"\xff\xfe"), Holder::Foreign);
    }

    #[test]
    fn keys_are_names_behind_the_prefix() {
        let name: LockName = "invoice:42".parse().unwrap();
        let (bare, shop): (Prefix, Prefix) = (Prefix::default(), "shop".parse().unwrap());
        assert_eq!(bare.key(&name), "invoice:42");
        assert_eq!(shop.key(&name), "shop:invoice:42");
        assert_eq!(shop.name(b"shop:invoice:42"), Some(name));
        for other in ["shop", "shop:", "shopinvoice:42", "invoice:42"] {
            assert_eq!(shop.name(other.as_bytes()), None, "{other}");
        }
        assert_eq!(bare.name(COUNTER.as_bytes()), None);
        assert_eq!(bare.name(b"\xff"), None);
        assert_eq!(tombstone("a", Owner::from_random([1; 16])), format!("leasehold:{{a}}:t:{}", "01".repeat(16)));
    }

    #[test]
    fn prefixes_are_bounded() {
        for bad in ["", "leasehold", "leasehold:x", "a\nb", &"x".repeat(101)] {
            assert!(bad.parse::<Prefix>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn patterns_are_escaped_for_scan() {
        let shop: Prefix = "sh*p".parse().unwrap();
        assert_eq!(shop.scan_pattern("inv[1]*?"), "sh\\*p:inv\\[1\\]**");
        assert_eq!(Prefix::default().scan_pattern("a-b^\\"), "a\\-b\\^\\\\");
    }
}
