//! The keys, and the value of a held lock: `lh1:OWNER:LOW:HIGH:NOTE`.

use std::fmt;

use lock_core::{FencingToken, Holder, Lease, LockName, Mode, Note, Owner, Prefix, Slots, TokenRange};
use redis::{RedisWrite, ToRedisArgs};

/// How each of our values begins: the layout and its version.
const LAYOUT: &str = "lh1:";

/// The one counter of fencing tokens of this database, the same under every prefix.
pub(crate) const COUNTER: &str = "leasehold:counter";
/// The marker: the incarnation of the server that the counter was last verified for.
pub(crate) const INCARNATION: &str = "leasehold:incarnation";
/// As long as it is there, clients that heed it are granted no free lock.
pub(crate) const DWELL: &str = "leasehold:dwell";
/// What other clients pass in its place. It is never written.
const NO_DWELL: &str = "leasehold:no-dwell";
/// The longest ttl that any client uses, in milliseconds.
pub(crate) const LONGEST: &str = "leasehold:max_ttl";

/// What a node of a quorum knows about itself.
pub(crate) const NODE: &str = "leasehold:node";

/// The lock of a key; `None` if the key is not a lock under this prefix.
pub(crate) fn name_of(prefix: &Prefix, key: &[u8]) -> Option<LockName> {
    prefix.name(std::str::from_utf8(key).ok()?)
}

/// A pattern for `SCAN` that matches at least the keys of the locks that the glob matches.
pub(crate) fn scan_pattern(prefix: &Prefix, glob: &str) -> String {
    let mut pattern = literal(&prefix.beginning());
    for c in glob.chars() {
        match c {
            // Redis' `?` matches one byte, ours one character.
            '*' | '?' => pattern.push('*'),
            other => pattern.push_str(&literal(other.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern
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

/// The keys of one lock.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a>(&'a Prefix, &'a LockName);

/// A key of a script, written directly into the command.
pub(crate) enum Key<'a> {
    /// The one counter of all locks.
    Counter,
    /// What keeps free locks from being granted while it is there.
    Dwell,
    /// A key that is never there.
    NoDwell,
    /// The lock itself.
    Lock(Keys<'a>),
    /// The owners that wait.
    Queue(Keys<'a>),
    /// What each of them asked for.
    Waiters(Keys<'a>),
    /// The number of the last place.
    Numbers(Keys<'a>),
    /// Who shares the lock, and until when.
    Holders(Keys<'a>),
    /// The leases that share the lock.
    Leases(Keys<'a>),
    /// The limit that was set.
    Limits(Keys<'a>),
    /// Marks that an owner's claims were given up.
    Tombstone(Keys<'a>, Owner),
    /// A part of the latch of this name.
    Latch(Keys<'a>, &'static str),
    /// What a node of a quorum knows about itself.
    Node,
    /// The inboxes to notify when a node's lock is free.
    Inboxes(Keys<'a>),
    /// What is noted about a member of the deployment.
    Seen(&'a str),
}

impl<'a> Keys<'a> {
    pub(crate) fn of(prefix: &'a Prefix, name: &'a LockName) -> Self {
        Self(prefix, name)
    }

    pub(crate) fn lock(self) -> Key<'a> {
        Key::Lock(self)
    }

    pub(crate) fn queue(self) -> Key<'a> {
        Key::Queue(self)
    }

    pub(crate) fn waiters(self) -> Key<'a> {
        Key::Waiters(self)
    }

    pub(crate) fn numbers(self) -> Key<'a> {
        Key::Numbers(self)
    }

    pub(crate) fn holders(self) -> Key<'a> {
        Key::Holders(self)
    }

    pub(crate) fn leases(self) -> Key<'a> {
        Key::Leases(self)
    }

    pub(crate) fn limits(self) -> Key<'a> {
        Key::Limits(self)
    }

    /// The latch, the ids of its two latest generations, and the inboxes of those who wait.
    pub(crate) fn latch(self) -> [Key<'a>; 4] {
        ["", ":a", ":b", ":w"].map(|part| Key::Latch(self, part))
    }

    pub(crate) fn inboxes(self) -> Key<'a> {
        Key::Inboxes(self)
    }

    pub(crate) fn tombstone(self, owner: Owner) -> Key<'a> {
        Key::Tombstone(self, owner)
    }

    /// Writes one of our own keys for this lock. `write!` takes several times as long, and each request needs a few.
    fn beside(self, f: &mut fmt::Formatter<'_>, what: &[&str]) -> fmt::Result {
        f.write_str("leasehold:{")?;
        fmt::Display::fmt(&self, f)?;
        f.write_str("}:")?;
        what.iter().try_for_each(|part| f.write_str(part))
    }
}

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(prefix) = self.0.as_deref() {
            f.write_str(prefix)?;
            f.write_str(":")?;
        }
        f.write_str(self.1.as_str())
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter => f.write_str(COUNTER),
            Self::Dwell => f.write_str(DWELL),
            Self::NoDwell => f.write_str(NO_DWELL),
            Self::Lock(keys) => keys.fmt(f),
            Self::Queue(keys) => keys.beside(f, &["q"]),
            Self::Waiters(keys) => keys.beside(f, &["w"]),
            Self::Numbers(keys) => keys.beside(f, &["n"]),
            Self::Holders(keys) => keys.beside(f, &["h"]),
            Self::Leases(keys) => keys.beside(f, &["s"]),
            Self::Limits(keys) => keys.beside(f, &["l"]),
            Self::Tombstone(keys, owner) => keys.beside(f, &["t:", &owner.to_wire()]),
            Self::Latch(keys, part) => keys.beside(f, &["latch", part]),
            Self::Node => f.write_str(NODE),
            Self::Inboxes(keys) => keys.beside(f, &["i"]),
            Self::Seen(member) => write!(f, "leasehold:seen:{member}"),
        }
    }
}

impl ToRedisArgs for Key<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg_fmt(self);
    }
}

/// What waiters ask for, beside the key of a lock as it was found.
pub(crate) fn waiters_beside(key: &[u8]) -> Vec<u8> {
    [b"leasehold:{", key, b"}:w"].concat()
}

/// How the value of this owner's lease begins, whatever its tokens.
pub(crate) fn of_owner(owner: Owner) -> String {
    [LAYOUT, &owner.to_wire(), ":"].concat()
}

/// How the value of this lease begins.
pub(crate) fn of_lease(lease: &Lease) -> String {
    format!("{}{}", of_owner(lease.owner), of_tokens(lease.tokens))
}

/// A lease that may share its lock, as a renewal names it.
pub(crate) fn of_shared_lease(lease: &Lease) -> String {
    format!("lh2:{}:{}", lease.owner.to_wire(), of_tokens(lease.tokens))
}

pub(crate) fn of_tokens(tokens: TokenRange) -> String {
    format!("{}:{}:", tokens.low(), tokens.high())
}

/// The limit of readers: above that of any semaphore.
const READERS: u32 = i32::MAX.cast_unsigned();

/// How many may hold a lock at a time beside a lease of this mode; 0 for an exclusive one.
pub(crate) fn limit_of(mode: Mode) -> u32 {
    match mode {
        Mode::Exclusive => 0,
        Mode::Permits { limit, .. } => limit.get(),
        Mode::Shared | _ => READERS,
    }
}

/// The mode with this limit that takes so many permits.
pub(crate) fn mode_of(limit: i64, count: i64) -> Option<Mode> {
    match u32::try_from(limit).ok()? {
        0 => Some(Mode::Exclusive),
        READERS => Some(Mode::Shared),
        limit => Mode::permits(u32::try_from(count).ok()?, limit).ok(),
    }
}

/// The same for a lease that is held: its permits may be more than the limit, if that was lowered.
pub(crate) fn held_mode_of(limit: i64, count: i64) -> Option<Mode> {
    match mode_of(limit, 1)?.limit() {
        Some(limit) => mode_of(Mode::LIMIT_MAX.into(), count).map(|permits| permits.under(limit)),
        None => mode_of(limit, count),
    }
}

/// Reads slots, separated by commas; none if there is nothing to read.
pub(crate) fn slots(text: &str) -> Option<Slots> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    Some(Slots::new(numbers.map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()?))
}

/// The contents of one of our values.
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

    /// Who holds the lock, for display.
    pub(crate) fn holder(value: &[u8]) -> Holder {
        Self::read(value).map_or(Holder::Foreign, |Self { tokens, note, .. }| Holder::Leasehold { tokens, note })
    }
}

pub(crate) fn token(digits: &str) -> Option<FencingToken> {
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use lock_core::Limit;

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
    fn keys_of_our_own_are_no_locks() {
        for key in [COUNTER.as_bytes(), INCARNATION.as_bytes(), b"\xff"] {
            assert_eq!(name_of(&Prefix::default(), key), None);
        }
        let (shop, name): (Prefix, LockName) = ("shop".parse().unwrap(), "a".parse().unwrap());
        assert_eq!(name_of(&shop, b"shop:a"), Some(name.clone()));
        let keys = Keys::of(&shop, &name);
        assert_eq!(keys.lock().to_string(), "shop:a");
        assert_eq!(keys.waiters().to_string().into_bytes(), waiters_beside(b"shop:a"));
        assert_eq!(keys.queue().to_string(), "leasehold:{shop:a}:q");
        assert_eq!(keys.numbers().to_string(), "leasehold:{shop:a}:n");
        assert_eq!(keys.holders().to_string(), "leasehold:{shop:a}:h");
        assert_eq!(keys.leases().to_string(), "leasehold:{shop:a}:s");
        let latch = keys.latch().map(|key| key.to_string());
        assert_eq!((latch[0].as_str(), latch[3].as_str()), ("leasehold:{shop:a}:latch", "leasehold:{shop:a}:latch:w"));
        let tombstone = keys.tombstone(Owner::from_random([1; 16])).to_string();
        assert_eq!(tombstone, format!("leasehold:{{shop:a}}:t:{}", "01".repeat(16)));
    }

    #[test]
    fn a_limit_stands_for_a_mode() {
        let permits = Mode::permits(3, 7).unwrap();
        for (mode, limit, count) in [(Mode::Exclusive, 0, 1), (Mode::Shared, 2_147_483_647, 1), (permits, 7, 3)] {
            assert_eq!((limit_of(mode), mode_of(limit.into(), count)), (limit, Some(mode)));
        }
        assert_eq!((mode_of(-1, 1), mode_of(7, 0), mode_of(7, 8)), (None, None, None));
        assert_eq!(held_mode_of(2, 3), Some(permits.under(Limit::new(2).unwrap())));
        assert_eq!([held_mode_of(2_147_483_647, 0), held_mode_of(7, 65)], [Some(Mode::Shared), None]);
        assert_eq!([slots(""), slots("4,0"), slots("x")], [Some(Slots::NONE), Some(Slots::new([0, 4])), None]);
    }

    #[test]
    fn patterns_are_escaped_for_scan() {
        let shop: Prefix = "sh*p".parse().unwrap();
        assert_eq!(scan_pattern(&shop, "inv[1]*?"), "sh\\*p:inv\\[1\\]**");
        assert_eq!(scan_pattern(&Prefix::default(), "a-b^\\"), "a\\-b\\^\\\\");
    }
}
