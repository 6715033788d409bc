//! Where the keys of one lock are.

use lock_core::{LockName, Owner, Prefix};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where the entries of a lock are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    root: String,
    /// The name of the lock, escaped.
    name: String,
}

impl Directory {
    /// That of a lock. Slashes within the name are escaped, so that no directory is within another one.
    pub(crate) fn of(root: &str, prefix: &Prefix, name: &LockName) -> Self {
        let key = prefix.key(name.as_str()).replace('%', "%25").replace('/', "%2F");
        let name = if key.starts_with("leasehold-") { key.replacen('l', "%6C", 1) } else { key };
        Self { root: root.to_owned(), name }
    }

    /// The name of the lock that the entry with this key is of. `None` if the key is that of no entry, or of a lock without the prefix.
    pub(crate) fn name_of(root: &str, prefix: &Prefix, key: &[u8]) -> Option<LockName> {
        let key = std::str::from_utf8(key).ok()?.strip_prefix(root)?;
        let (escaped, _) = key.split_once('/')?;
        let plain = escaped.replace("%6C", "l").replace("%2F", "/").replace("%25", "%");
        let name = prefix.name(&plain)?;
        (Self::of(root, prefix, &name).name == escaped).then_some(name)
    }

    /// The key of the entry under this lease. The clients of etcd name theirs in the same way.
    pub(crate) fn entry(&self, lease: i64) -> Vec<u8> {
        format!("{}{}/{lease:x}", self.root, self.name).into_bytes()
    }

    /// The first key of an entry, and the one after the last.
    pub(crate) fn range(&self) -> (Vec<u8>, Vec<u8>) {
        keys_below(&format!("{}{}", self.root, self.name))
    }

    /// The key of a slot, which is there while a holder of permits has it.
    pub(crate) fn slot(&self, slot: u32) -> Vec<u8> {
        format!("{}{SLOTS}{}/{slot:010}", self.root, self.name).into_bytes()
    }

    /// The first key of a slot, and the one after the last.
    pub(crate) fn slots(&self) -> (Vec<u8>, Vec<u8>) {
        keys_below(&format!("{}{SLOTS}{}", self.root, self.name))
    }

    /// The key that is written when a lease is replaced.
    pub(crate) fn replaced(&self) -> Vec<u8> {
        format!("{}{CHANGES}{}/{REPLACED}", self.root, self.name).into_bytes()
    }

    /// The key of the limit that was set.
    pub(crate) fn limit(&self) -> Vec<u8> {
        format!("{}{CHANGES}{}/{LIMIT}", self.root, self.name).into_bytes()
    }

    /// The first of these two keys, and the one after the last.
    pub(crate) fn changes(&self) -> (Vec<u8>, Vec<u8>) {
        keys_below(&format!("{}{CHANGES}{}", self.root, self.name))
    }

    /// The latch of the same name.
    pub(crate) fn latch(&self) -> Latch {
        Latch(format!("{}{LATCHES}{}", self.root, self.name))
    }
}

/// Where the keys of a latch are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Latch(String);

impl Latch {
    /// The key of its state.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }

    /// The key of some of its arrivals.
    pub(crate) fn part(&self, number: u8) -> Vec<u8> {
        format!("{}/{number:02}", self.0).into_bytes()
    }

    /// The first key of arrivals, and the one after the last.
    pub(crate) fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        keys_below(&self.0)
    }
}

/// Where all latches are.
const LATCHES: &str = "leasehold-latches/";

/// Where the slots of all semaphores are.
const SLOTS: &str = "leasehold-slots/";
/// Where the changes of all locks are that waiters have to know of.
const CHANGES: &str = "leasehold-changes/";
const REPLACED: &str = "replaced";
const LIMIT: &str = "limit";

/// The keys that begin with this and a slash.
fn keys_below(beginning: &str) -> (Vec<u8>, Vec<u8>) {
    // The byte after a slash.
    (format!("{beginning}/").into_bytes(), format!("{beginning}0").into_bytes())
}

/// What stands for an owner in the store. It does not tell the owner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct OwnerHash(String);

impl OwnerHash {
    pub(crate) fn of(owner: Owner) -> Self {
        let hash = Sha256::digest(owner.to_wire());
        Self(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// The key that is there while late claims of this owner are refused.
    pub(crate) fn tombstone(&self, root: &str) -> Vec<u8> {
        format!("{root}leasehold-given-up/{}", self.0).into_bytes()
    }
}
