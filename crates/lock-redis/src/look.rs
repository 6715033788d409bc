//! Questions for operators: who holds what, and the end of a lease. No I/O.

use std::time::Duration;

use lock_core::inspect::{Cursor, Entry, Query, Revoked, glob_matches};
use lock_core::{FencingToken, LockName, Operation};
use redis::Value;

use crate::failure::Failure;
use crate::script;
use crate::value::{Stored, name_of, scan_pattern};
use crate::wire::{Call, Question, Wire, read, remaining};

/// How many keys one `SCAN` looks at, at least and at most.
const SCAN_COUNT: (u32, u32) = (10, 1000);

/// How many steps through the keys one page takes at most while it is empty.
pub(crate) const SCANS_PER_PAGE: u32 = 20;

/// What a key holds.
pub(crate) enum Seen {
    /// Nothing.
    Nothing,
    /// A value that is no string.
    OtherKind,
    /// A string, perhaps cut, and how long until it expires.
    Value(Vec<u8>, Option<Duration>),
}

/// Looks at keys, as they are in Redis.
pub(crate) struct Look<'a>(pub(crate) &'a [Vec<u8>]);

impl Question for Look<'_> {
    const OPERATION: Operation = Operation::Inspect;
    type Answer = Vec<Seen>;

    fn call(&self, _wire: &Wire) -> Result<Call, Failure> {
        Ok(Call::script(&script::LOOK, self.0))
    }

    fn read(&self, _wire: &Wire, reply: Value) -> Result<Vec<Seen>, Failure> {
        let parts: Vec<Value> = read(reply)?;
        if parts.len() != self.0.len() * 2 {
            return Err(Failure::strange_answer());
        }
        parts.chunks_exact(2).map(seen).collect()
    }
}

fn seen(pair: &[Value]) -> Result<Seen, Failure> {
    match pair {
        [Value::Nil, _] => Ok(Seen::Nothing),
        [Value::BulkString(value), Value::Int(pttl)] => Ok(Seen::Value(value.clone(), remaining(*pttl))),
        [Value::Int(_), _] => Ok(Seen::OtherKind),
        _ => Err(Failure::strange_answer()),
    }
}

/// Looks at the one key of a lock.
pub(crate) fn look_at(wire: &Wire, name: &LockName) -> Call {
    Call::script(&script::LOOK, &[wire.prefix.key(name.as_str())])
}

pub(crate) fn seen_one(reply: Value) -> Result<Seen, Failure> {
    seen(&read::<Vec<Value>>(reply)?)
}

/// Who holds a lock.
pub(crate) struct WhoHolds<'a>(pub(crate) &'a LockName);

impl Question for WhoHolds<'_> {
    const OPERATION: Operation = Operation::Inspect;
    type Answer = Option<Entry>;

    fn call(&self, wire: &Wire) -> Result<Call, Failure> {
        Ok(look_at(wire, self.0))
    }

    fn read(&self, _wire: &Wire, reply: Value) -> Result<Option<Entry>, Failure> {
        match seen_one(reply)? {
            Seen::Nothing => Ok(None),
            Seen::OtherKind => Err(Failure::other_kind()),
            Seen::Value(value, remaining) => {
                Ok(Some(Entry { name: self.0.clone(), holder: Stored::holder(&value), remaining, waiters: 0 }))
            }
        }
    }
}

/// One step through all keys: the locks that match, and where to go on.
pub(crate) struct Scan<'a> {
    pub(crate) query: &'a Query,
    pub(crate) cursor: Option<&'a Cursor>,
}

impl Question for Scan<'_> {
    const OPERATION: Operation = Operation::Inspect;
    type Answer = (Vec<Vec<u8>>, Option<Cursor>);

    fn call(&self, wire: &Wire) -> Result<Call, Failure> {
        let cursor: u64 = match self.cursor {
            None => 0,
            Some(cursor) => cursor.0.parse().map_err(|_| Failure::unsupported("this cursor is not from a Redis"))?,
        };
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(scan_pattern(&wire.prefix, &self.query.pattern));
        scan.arg("COUNT").arg(self.query.limit.clamp(SCAN_COUNT.0, SCAN_COUNT.1)).arg("TYPE").arg("string");
        Ok(Call::plain(scan))
    }

    fn read(&self, wire: &Wire, reply: Value) -> Result<Self::Answer, Failure> {
        let (next, keys): (String, Vec<Vec<u8>>) = read(reply)?;
        let matches = |key: &Vec<u8>| {
            name_of(&wire.prefix, key).is_some_and(|name| glob_matches(&self.query.pattern, name.as_str()))
        };
        Ok((keys.into_iter().filter(matches).collect(), (next != "0").then_some(Cursor(next))))
    }
}

/// The locks of ours among the keys that were looked at.
pub(crate) fn entries(wire: &Wire, keys: &[Vec<u8>], seen: Vec<Seen>) -> Vec<Entry> {
    let entry = |(key, seen): (&Vec<u8>, Seen)| match seen {
        Seen::Value(value, remaining) if Stored::read(&value).is_some() => {
            Some(Entry { name: name_of(&wire.prefix, key)?, holder: Stored::holder(&value), remaining, waiters: 0 })
        }
        Seen::Value(..) | Seen::Nothing | Seen::OtherKind => None,
    };
    keys.iter().zip(seen).filter_map(entry).collect()
}

/// Ends the lease that spans a token.
pub(crate) struct Revocation<'a>(pub(crate) &'a LockName, pub(crate) FencingToken);

impl Question for Revocation<'_> {
    const OPERATION: Operation = Operation::Inspect;
    type Answer = Revoked;

    fn call(&self, wire: &Wire) -> Result<Call, Failure> {
        Ok(Call::script(&script::REVOKE, &[wire.prefix.key(self.0.as_str())]).arg(self.1.get()))
    }

    fn read(&self, _wire: &Wire, reply: Value) -> Result<Revoked, Failure> {
        match read::<i64>(reply)? {
            0 => Ok(Revoked::NotHeld),
            _ => Ok(Revoked::Revoked),
        }
    }
}
