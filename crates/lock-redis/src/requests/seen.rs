//! What a key of a lock holds, as the script that looks at it reports.

use std::time::Duration;

use lock_core::Note;
use lock_core::inspect::{Held, Waiter};
use redis::Value::{self, BulkString as Text, Int};

use super::value::{Stored, held_mode_of, mode_of, slots};
use crate::failure::Failure;
use crate::wire::{read, remaining};

/// What a key holds.
#[derive(Debug)]
pub(crate) enum Seen {
    /// Nothing.
    Nothing,
    /// A value that is not a string.
    OtherKind,
    /// A string.
    Value(SeenLock),
}

/// A string where a lock may be.
#[derive(Debug)]
pub(crate) struct SeenLock {
    /// The string, perhaps truncated.
    pub(crate) value: Vec<u8>,
    /// How long until it expires.
    pub(crate) remaining: Option<Duration>,
    /// How many wait for it.
    pub(crate) waiters: u32,
    /// The first of them.
    pub(crate) queue: Vec<Waiter>,
    /// Who shares it.
    pub(crate) shared: Option<SeenShared>,
}

/// The leases that share a lock.
#[derive(Debug)]
pub(crate) struct SeenShared {
    /// How many there are.
    pub(crate) leases: u32,
    /// The first of them, that one first that ends last.
    pub(crate) holders: Vec<Held>,
}

impl Seen {
    /// Reads what the script reports about one lock.
    pub(crate) fn read(reply: Value) -> Result<Self, Failure> {
        match read::<Vec<Value>>(reply)?.as_slice() {
            [Value::Nil, ..] => Ok(Self::Nothing),
            [Int(_), ..] => Ok(Self::OtherKind),
            [Text(value), Int(pttl), Int(waiters), more @ ..] => {
                lock(value, *pttl, *waiters, more).ok_or_else(Failure::strange_answer)
            }
            _ => Err(Failure::strange_answer()),
        }
    }
}

fn lock(value: &[u8], pttl: i64, waiters: i64, more: &[Value]) -> Option<Seen> {
    let queue = more.first().map_or(Some(Vec::new()), queue)?;
    let shared = match more.get(1..).unwrap_or_default() {
        [Int(limit), Int(leases), Value::Array(listed)] => Some(shared(*limit, *leases, listed)?),
        _ => None,
    };
    // Its leases have ended, and its key does so within a millisecond.
    if shared.as_ref().is_some_and(|shared| shared.holders.is_empty()) {
        return Some(Seen::Nothing);
    }
    let (value, waiters) = (value.to_vec(), u32::try_from(waiters).ok()?);
    Some(Seen::Value(SeenLock { value, remaining: remaining(pttl), waiters, queue, shared }))
}

/// Reads limit, width, note and age of each waiter.
fn queue(listed: &Value) -> Option<Vec<Waiter>> {
    let Value::Array(listed) = listed else { return None };
    let waiter = |part: &[Value]| match part {
        [Int(limit), Int(width), Text(note), Int(seconds)] => Some(Waiter {
            note: Some(Note::from_wire(&String::from_utf8_lossy(note))),
            mode: mode_of(*limit, *width)?,
            age: u64::try_from(*seconds).ok().map(Duration::from_secs),
        }),
        _ => None,
    };
    listed.chunks(4).map(waiter).collect()
}

/// Reads triples of a value, the time left and slots.
fn shared(limit: i64, leases: i64, listed: &[Value]) -> Option<SeenShared> {
    let lease = |part: &[Value]| match part {
        [Text(value), Int(left), Text(text)] => {
            let slots = slots(std::str::from_utf8(text).ok()?)?;
            let mode = held_mode_of(limit, slots.get().len().try_into().ok()?)?;
            Some(Held {
                holder: Stored::holder(value),
                mode,
                slots,
                age: Stored::age(value),
                remaining: remaining(*left),
            })
        }
        _ => None,
    };
    Some(SeenShared {
        leases: u32::try_from(leases).ok()?,
        holders: listed.chunks(3).map(lease).collect::<Option<_>>()?,
    })
}
