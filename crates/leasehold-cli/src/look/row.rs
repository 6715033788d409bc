//! A lock as JSON, for scripts.

use leasehold::kit::Slot;
use lock_core::inspect::{Entry, Held};
use lock_core::{Holder, Mode, ModeKind, NameKind};
use serde::Serialize;

use crate::durations::millis;
use crate::holders::is_gone;

/// One lock.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    name: &'a str,
    held: bool,
    /// The slot of a schedule that this lock marks; null if it marks none.
    marks: Option<String>,
    /// Of several holders, the one whose lease ends last.
    #[serde(flatten)]
    who: Who<'a>,
    /// For how long it has held the lock; null if the store does not say.
    held_ms: Option<u64>,
    /// Until that lease ends unless it is renewed; null if it never expires.
    remaining_ms: Option<u64>,
    waiters: u32,
    /// What the name is used as; null if the lock is free.
    kind: Option<NameKind>,
    /// How many slots a semaphore has.
    limit: Option<u32>,
    /// How many hold the lock.
    leases: u32,
    /// Those who hold it; of very many, the last ones to end.
    holders: Vec<Lease<'a>>,
    /// What the waiters ask for, in their order; of very many, the first.
    queue: Vec<Wanted>,
}

/// Who holds a lease.
#[derive(Debug, Default, Serialize)]
struct Who<'a> {
    /// Whether the holder uses this library.
    leasehold: bool,
    pid: Option<u32>,
    host: Option<&'a str>,
    /// Whether the holder is a process of this host that has ended; null if unknown.
    gone: Option<bool>,
    why: Option<&'a str>,
    /// The highest token of the lease.
    token: Option<u64>,
}

/// One of the leases that hold a lock.
#[derive(Debug, Serialize)]
pub(crate) struct Lease<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    mode: ModeKind,
    slots: &'a [u32],
    /// For how long the lease has held the lock; null if the store does not say.
    held_ms: Option<u64>,
    /// Until the lease ends unless it is renewed; null if it never expires.
    remaining_ms: Option<u64>,
}

/// What a waiter asks for.
#[derive(Debug, Serialize)]
struct Wanted {
    mode: ModeKind,
    /// How many slots of a semaphore; 0 of a lock.
    permits: u32,
}

impl<'a> Row<'a> {
    /// A lock that nobody holds.
    pub(super) fn free(name: &'a str) -> Self {
        Row {
            name,
            held: false,
            marks: None,
            who: Who::default(),
            held_ms: None,
            remaining_ms: None,
            waiters: 0,
            kind: None,
            limit: None,
            leases: 0,
            holders: Vec::new(),
            queue: Vec::new(),
        }
    }
}

impl<'a> From<&'a Entry> for Row<'a> {
    fn from(entry: &'a Entry) -> Self {
        let last = entry.holders.first();
        let mode = last.map(|held| held.mode);
        Row {
            name: entry.name.as_str(),
            held: true,
            marks: Slot::marked_by(entry).map(|slot| slot.to_string()),
            who: Who::from(&entry.holder),
            held_ms: last.and_then(|held| held.age).map(millis),
            remaining_ms: entry.remaining.map(millis),
            waiters: entry.waiters,
            kind: mode.map(Mode::name_kind),
            limit: mode.and_then(limit),
            leases: entry.leases,
            holders: entry.holders.iter().map(Lease::from).collect(),
            queue: entry.queue.iter().map(|mode| Wanted { mode: mode.kind(), permits: mode.count() }).collect(),
        }
    }
}

impl<'a> From<&'a Held> for Lease<'a> {
    fn from(held: &'a Held) -> Self {
        Lease {
            who: Who::from(&held.holder),
            mode: held.mode.kind(),
            slots: held.slots.get(),
            held_ms: held.age.map(millis),
            remaining_ms: held.remaining.map(millis),
        }
    }
}

impl<'a> From<&'a Holder> for Who<'a> {
    fn from(holder: &'a Holder) -> Self {
        match holder {
            Holder::Leasehold { tokens, note } => Who {
                leasehold: true,
                pid: note.pid(),
                host: Some(note.host()),
                gone: is_gone(holder),
                why: Some(note.why()),
                token: Some(tokens.high().get()),
            },
            Holder::Foreign => Who::default(),
        }
    }
}

fn limit(mode: Mode) -> Option<u32> {
    if let Mode::Permits { limit, .. } = mode { Some(limit.get()) } else { None }
}
