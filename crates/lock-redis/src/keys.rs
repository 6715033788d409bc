//! The keys of locks, and those that locks share.
//!
//! In a cluster, a script may use the keys of one hash slot only. So each hash slot has its own counter, marker and dwell there,
//! and all keys of a lock are in one.

use std::fmt;

use lock_core::{FencingToken, LockName, Prefix};
use redis::{RedisWrite, ToRedisArgs};

use crate::deployment::Deployment;
use crate::hash_slot::HashSlot;

/// What shares one counter of fencing tokens, one marker and one dwell: the same under every prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All locks of a database.
    Database,
    /// The locks in one hash slot of a cluster.
    HashSlot(HashSlot),
}

/// A key of a script, written directly into the command.
pub(crate) enum Key<'a> {
    /// The one counter of all locks of a scope.
    Counter(Scope),
    /// The marker: the incarnation of the server that the counter was last verified for.
    Incarnation(Scope),
    /// As long as it is there, clients that heed it are granted no free lock.
    Dwell(Scope),
    /// What other clients pass in its place. It is never written. So a server of a cluster runs no script that has this key while the
    /// hash slot moves: without it, the script might run and end half-way, at a key that it did not name.
    NoDwell(Scope),
    /// The longest ttl that any client uses, in milliseconds.
    Longest(Scope),
    /// The lock itself.
    Lock(Keys<'a>),
    /// The owners that wait.
    Queue(Keys<'a>),
    /// What each of them asked for.
    Waiters(Keys<'a>),
    /// The limit that was set.
    Limits(Keys<'a>),
    /// Who revoked the lease with this highest token.
    Revocation(Keys<'a>, FencingToken),
    /// Whose leases were revoked at a node by this token.
    RevokedOwners(Keys<'a>, FencingToken),
    /// What the other keys of the lock begin with, before the lock's own key.
    Lead(Keys<'a>),
    /// A part of the latch of this name.
    Latch(Keys<'a>, &'static str),
    /// What a node of a quorum knows about itself.
    Node,
    /// What is noted about a member of the deployment.
    Seen(&'a str),
}

/// The keys of one lock.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    prefix: &'a Prefix,
    name: &'a LockName,
    scope: Scope,
    /// What leads its other keys to its hash slot, if its own key in braces would not.
    tag: Option<HashSlot>,
}

impl<'a> Keys<'a> {
    pub(crate) fn of(deployment: Deployment, prefix: &'a Prefix, name: &'a LockName) -> Self {
        let (scope, tag) = match deployment {
            Deployment::OneServer | Deployment::Sentinels | Deployment::Quorum => (Scope::Database, None),
            Deployment::Cluster => {
                let key = prefix.key(name.as_str());
                let slot = HashSlot::of(key.as_bytes());
                (Scope::HashSlot(slot), key.contains(['{', '}']).then_some(slot))
            }
        };
        Self { prefix, name, scope, tag }
    }

    /// What this lock shares a counter with.
    pub(crate) fn scope(self) -> Scope {
        self.scope
    }

    /// The latch, the ids of its two latest generations, and the inboxes of the waiters.
    pub(crate) fn latch(self) -> [Key<'a>; 4] {
        ["", ":a", ":b", ":w"].map(|part| Key::Latch(self, part))
    }

    /// Writes what our own keys for this lock begin with.
    fn lead(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("leasehold:{")?;
        let Some(slot) = self.tag else { return Ok(()) };
        fmt::Display::fmt(&slot.tag(), f)?;
        f.write_str("}:{")
    }

    /// Writes one of our own keys for this lock. `write!` takes several times as long, and each request needs a few.
    fn beside(self, f: &mut fmt::Formatter<'_>, what: &[&str]) -> fmt::Result {
        self.lead(f)?;
        fmt::Display::fmt(&self, f)?;
        f.write_str("}:")?;
        what.iter().try_for_each(|part| f.write_str(part))
    }
}

impl Key<'static> {
    /// What verifying reads and writes.
    pub(crate) fn verified(scope: Scope) -> [Self; 4] {
        [Self::Counter(scope), Self::Incarnation(scope), Self::Dwell(scope), Self::Longest(scope)]
    }

    /// The same in a cluster.
    pub(crate) fn verified_in(slot: HashSlot) -> [Self; 5] {
        let scope = Scope::HashSlot(slot);
        let [counter, marker, dwell, longest] = Self::verified(scope);
        [counter, marker, dwell, longest, Self::NoDwell(scope)]
    }
}

impl Scope {
    fn key(self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        f.write_str("leasehold:")?;
        if let Self::HashSlot(slot) = self {
            write!(f, "{{{}}}:", slot.tag())?;
        }
        f.write_str(what)
    }
}

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(prefix) = self.prefix.as_deref() {
            f.write_str(prefix)?;
            f.write_str(":")?;
        }
        f.write_str(self.name.as_str())
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(scope) => scope.key(f, "counter"),
            Self::Incarnation(scope) => scope.key(f, "incarnation"),
            Self::Dwell(scope) => scope.key(f, "dwell"),
            Self::NoDwell(scope) => scope.key(f, "no-dwell"),
            Self::Longest(scope) => scope.key(f, "max_ttl"),
            Self::Lock(keys) => keys.fmt(f),
            Self::Queue(keys) => keys.beside(f, &["q"]),
            Self::Waiters(keys) => keys.beside(f, &["w"]),
            Self::Limits(keys) => keys.beside(f, &["l"]),
            Self::RevokedOwners(keys, token) => keys.beside(f, &["o:", &token.to_string()]),
            Self::Revocation(keys, highest) => keys.beside(f, &["r:", &highest.to_string()]),
            Self::Lead(keys) => keys.lead(f),
            Self::Latch(keys, part) => keys.beside(f, &["latch", part]),
            Self::Node => f.write_str("leasehold:node"),
            Self::Seen(member) => write!(f, "leasehold:seen:{member}"),
        }
    }
}

impl ToRedisArgs for Key<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg_fmt(self);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_our_own_are_no_locks() {
        for key in [Key::Counter(Scope::Database), Key::Incarnation(Scope::Database)] {
            assert_eq!(name_of(&Prefix::default(), key.to_string().as_bytes()), None);
        }
        assert_eq!(name_of(&Prefix::default(), b"\xff"), None);
        let (shop, name): (Prefix, LockName) = ("shop".parse().unwrap(), "a".parse().unwrap());
        assert_eq!(name_of(&shop, b"shop:a"), Some(name));
    }

    /// All keys of this name.
    fn keys(deployment: Deployment, name: &str) -> Vec<String> {
        let (shop, name): (Prefix, LockName) = ("shop".parse().unwrap(), name.parse().unwrap());
        let keys = Keys::of(deployment, &shop, &name);
        let [g, a, b, w] = keys.latch();
        let [lock, queue, waiters] = [Key::Lock(keys), Key::Queue(keys), Key::Waiters(keys)];
        let all = [lock, queue, waiters, Key::Limits(keys), g, a, b, w];
        all.iter().map(Key::to_string).collect()
    }

    /// What the keys of a scope are called.
    fn shared(scope: Scope) -> [String; 5] {
        [Key::Counter(scope), Key::Incarnation(scope), Key::Dwell(scope), Key::NoDwell(scope), Key::Longest(scope)]
            .map(|key| key.to_string())
    }

    #[test]
    fn keys_are_named_as_the_layout_says() {
        let parts = ["q", "w", "l", "latch", "latch:a", "latch:b", "latch:w"];
        let named = |lock: &str, beside: &str| {
            [lock.to_owned()].into_iter().chain(parts.iter().map(|part| format!("{beside}{part}"))).collect::<Vec<_>>()
        };
        for deployment in [Deployment::OneServer, Deployment::Cluster] {
            assert_eq!(keys(deployment, "a"), named("shop:a", "leasehold:{shop:a}:"));
        }
        assert_eq!(keys(Deployment::OneServer, "a{b}"), named("shop:a{b}", "leasehold:{shop:a{b}}:"));
        // 3300 is the hash slot of `b`.
        let tag = HashSlot::of(b"b").tag();
        assert_eq!(
            keys(Deployment::Cluster, "a{b}"),
            named("shop:a{b}", &format!("leasehold:{{{tag}}}:{{shop:a{{b}}}}:"))
        );
        let database = ["counter", "incarnation", "dwell", "no-dwell", "max_ttl"].map(|key| format!("leasehold:{key}"));
        assert_eq!(shared(Scope::Database), database);
        let of_slot = database.map(|key| key.replace(':', &format!(":{{{tag}}}:")));
        assert_eq!(shared(Scope::HashSlot(HashSlot::of(b"b"))), of_slot);
    }

    #[test]
    fn in_a_cluster_all_keys_of_a_lock_are_in_one_hash_slot() {
        for name in
            ["a", "a{b}", "{b}", "a{b}{c}", "{", "}", "a}b", "a{b", "{}", "{}{c}", "}{", "a}:q", "{b}:latch", "{{b}}"]
        {
            let name: LockName = name.parse().unwrap();
            for prefix in ["shop", "{shop}", "sh}op", "{"] {
                let prefix: Prefix = prefix.parse().unwrap();
                let keys = Keys::of(Deployment::Cluster, &prefix, &name);
                let slot = HashSlot::of(prefix.key(name.as_str()).as_bytes());
                let highest = FencingToken::new(7).unwrap();
                let beside = [Key::Queue(keys), Key::Revocation(keys, highest), Key::Latch(keys, ":w")];
                let beside = beside.map(|key| key.to_string());
                assert!(beside.iter().all(|key| key.starts_with(&format!("{}{keys}}}:", Key::Lead(keys)))));
                for key in beside.iter().chain(&shared(keys.scope())) {
                    assert_eq!(HashSlot::of(key.as_bytes()), slot, "{key} beside {name}");
                }
            }
        }
    }

    #[test]
    fn no_two_locks_share_a_key() {
        let names = ["a", "a{b}", "a{b}:latch", "a{b}}:latch", "{b}", "{b}:w", "b", "{b}:{b}", "latch", "a:latch"];
        let mut all: Vec<_> = names.iter().flat_map(|name| keys(Deployment::Cluster, name)).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn patterns_are_escaped_for_scan() {
        let shop: Prefix = "sh*p".parse().unwrap();
        assert_eq!(scan_pattern(&shop, "inv[1]*?"), "sh\\*p:inv\\[1\\]**");
        assert_eq!(scan_pattern(&Prefix::default(), "a-b^\\"), "a\\-b\\^\\\\");
    }
}
