//! Questions for operators: who holds what. No I/O.

use lock_core::LockName;
use lock_core::inspect::{Cursor, Entry, Query, glob_matches};
use redis::{ToRedisArgs, Value};

use super::seen::{Seen, SeenLock, SeenShared};
use super::value::Stored;
use crate::failure::Failure;
use crate::keys::{Key, name_of, scan_pattern};
use crate::script;
use crate::wire::{Call, Line, Question, Wire, read};

/// How many keys one `SCAN` looks at, at least and at most.
const SCAN_COUNT: (u32, u32) = (10, 1000);

/// How many steps through the keys one page takes at most while it is empty.
pub(crate) const SCANS_PER_PAGE: u32 = 20;

/// Looks at locks: at all of them, or at as many of the first as do not keep other clients waiting.
pub(crate) struct Look<'a>(pub(crate) &'a [LockName]);

/// The next questions about the first of these locks. What the answers leave out is asked next.
pub(crate) fn next_looks<'a>(wire: &Wire, rest: &'a [LockName]) -> impl Iterator<Item = Look<'a>> {
    rest.chunks(wire.locks_per_script()).take(wire.looks_at_once()).map(Look)
}

impl Question for Look<'_> {
    type Answer = Vec<Seen>;

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys = self.0.iter().map(|name| wire.keys(name));
        let (locks, waiters) = (keys.clone().map(Key::Lock), keys.map(Key::Waiters));
        Ok(look_at(&locks.chain(waiters).collect::<Vec<_>>()))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Vec<Seen>, Failure> {
        let parts: Vec<Value> = read(reply)?;
        if !(1..=self.0.len()).contains(&parts.len()) {
            return Err(Failure::strange_answer());
        }
        parts.into_iter().map(Seen::read).collect()
    }
}

/// Looks at locks and, after them, at what their waiters ask for.
fn look_at<K: ToRedisArgs>(keys: &[K]) -> Call {
    Call::script(&script::LOOK, keys)
}

/// Looks at one lock.
fn look_at_one(wire: &Wire, name: &LockName) -> Call {
    let keys = wire.keys(name);
    look_at(&[Key::Lock(keys), Key::Waiters(keys)])
}

/// Looks at one lock, without its waiters.
pub(crate) fn look_at_holder(wire: &Wire, name: &LockName) -> Call {
    look_at(&[Key::Lock(wire.keys(name))])
}

pub(crate) fn seen_one(reply: Value) -> Result<Seen, Failure> {
    let seen_all: Vec<Value> = read(reply)?;
    Seen::read(seen_all.into_iter().next().ok_or_else(Failure::strange_answer)?)
}

/// Who holds a lock.
pub(crate) struct WhoHolds<'a>(pub(crate) &'a LockName);

impl Question for WhoHolds<'_> {
    type Answer = Option<Entry>;

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        Ok(look_at_one(wire, self.0))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Option<Entry>, Failure> {
        match seen_one(reply)? {
            Seen::Nothing => Ok(None),
            Seen::OtherKind => Err(Failure::other_kind()),
            Seen::Value(lock) => Ok(Some(entry(self.0.clone(), lock))),
        }
    }
}

/// One step through all keys: the locks that match, and where to continue.
pub(crate) struct Scan<'a> {
    pub(crate) query: &'a Query,
    pub(crate) cursor: Option<&'a Cursor>,
}

impl Question for Scan<'_> {
    type Answer = (Vec<LockName>, Option<Cursor>);

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        let cursor: u64 = match self.cursor {
            None => 0,
            Some(cursor) => cursor.0.parse().map_err(|_| Failure::unsupported("this cursor is not from a Redis"))?,
        };
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(scan_pattern(&wire.prefix, &self.query.pattern));
        scan.arg("COUNT").arg(self.query.limit.clamp(SCAN_COUNT.0, SCAN_COUNT.1)).arg("TYPE").arg("string");
        Ok(Call::plain(scan))
    }

    fn read(&self, Line { wire, .. }: Line<'_>, reply: Value) -> Result<Self::Answer, Failure> {
        let (next, keys): (String, Vec<Vec<u8>>) = read(reply)?;
        let names = keys.iter().filter_map(|key| name_of(&wire.prefix, key));
        let matching = names.filter(|name| glob_matches(&self.query.pattern, name.as_str()));
        Ok((matching.collect(), (next != "0").then_some(Cursor(next))))
    }
}

/// The locks among the keys that were looked at: ours, and those of other libraries for which somebody waits here.
/// Whether any other string is a lock is unknown.
pub(crate) fn entries(names: &[LockName], seen: Vec<Seen>) -> Vec<Entry> {
    let listed = |(name, seen): (&LockName, Seen)| match seen {
        Seen::Value(lock) if lock.waiters > 0 || lock.shared.is_some() || Stored::read(&lock.value).is_some() => {
            Some(entry(name.clone(), lock))
        }
        Seen::Value(_) | Seen::Nothing | Seen::OtherKind => None,
    };
    names.iter().zip(seen).filter_map(listed).collect()
}

fn entry(name: LockName, lock: SeenLock) -> Entry {
    let SeenLock { value, remaining, waiters, queue, shared } = lock;
    let mut entry = Entry { waiters, queue, ..Entry::exclusive(name, Stored::holder(&value), remaining, 0) };
    entry.holders.iter_mut().for_each(|held| held.age = Stored::age(&value));
    match shared {
        Some(SeenShared { leases, holders }) => match holders.first() {
            Some(last) => {
                let (holder, remaining) = (last.holder.clone(), last.remaining);
                Entry { holder, remaining, leases, holders, ..entry }
            }
            None => entry,
        },
        None => entry,
    }
}
