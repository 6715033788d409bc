//! What a request has decided, as the server's function `commit` takes it.

use std::time::Duration;

use lock_core::{Owner, StoreEvent};
use lock_rules::window::{Commit, Compared};
use lock_rules::{Hold, Notice, Write};
use serde::Serialize;

use crate::wire::{Bell, HoldRow, PlaceRow, to_micros};

/// What `commit` takes.
#[derive(Serialize)]
pub(crate) struct CommitArguments<'a> {
    name: &'a str,
    within: u128,
    version: Option<u64>,
    tail: Option<u64>,
    leases: Vec<LeaseRow>,
    before: Option<u64>,
    writes: Vec<WriteRow>,
    notices: Vec<NoticeRow>,
    permits: Option<u32>,
    durable: bool,
}

/// A lease to compare.
#[derive(Serialize)]
struct LeaseRow {
    owner: String,
    high: u64,
    until: u64,
    /// Whether the commit ends it.
    ends: bool,
}

#[derive(Serialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
enum WriteRow {
    Hold(HoldRow),
    Extend { owner: String, until: u64 },
    End { owner: String },
    Place(PlaceRow),
    Leave { owner: String },
    Tombstone { owner: String, until: u64 },
    Limit { record: String, lim: u32, until: u64 },
    Revocation { token: u64, by: String, until: u64 },
    LastToken { token: u64 },
}

#[derive(Serialize)]
struct NoticeRow {
    #[serde(flatten)]
    client: Bell,
    /// Whose hold it is about; `None` if the waiter should ask.
    owner: Option<String>,
    wanted: bool,
}

impl<'a> CommitArguments<'a> {
    pub(crate) fn new(name: &'a str, within: Duration, commit: Commit<Bell>) -> Self {
        let Commit { version, tail, leases, before, writes, notices, permits } = commit;
        // Places, refusals and releases that free a lock may be lost: nobody relies on them.
        let is_relied_on = |write: &Write<Bell>| {
            matches!(write, Write::Hold(_) | Write::Extend(..) | Write::Limit(..) | Write::Revocation(..))
        };
        let durable = writes.iter().any(is_relied_on);
        let ends = |owner: Owner| writes.iter().any(|write| matches!(write, Write::End(ended) if *ended == owner));
        let compared = |lease: &Compared| LeaseRow {
            owner: lease.owner.to_wire(),
            high: lease.highest.get(),
            until: to_micros(lease.until),
            ends: ends(lease.owner),
        };
        let rows = leases.iter().map(compared).collect();
        // A lease that is kept has the tokens of the one that ends in its favour. A new one has new tokens.
        let is_kept = |hold: &Hold| leases.iter().any(|lease| ends(lease.owner) && lease.highest == hold.tokens.high());
        let before = before.map(to_micros);
        let writes = writes.iter().cloned().map(|write| WriteRow::new(write, is_kept)).collect();
        let notices = notices.into_iter().map(NoticeRow::new).collect();
        Self {
            name,
            within: within.as_millis(),
            version,
            tail,
            leases: rows,
            before,
            writes,
            notices,
            permits,
            durable,
        }
    }
}

impl WriteRow {
    fn new(write: Write<Bell>, is_kept: impl Fn(&Hold) -> bool) -> Self {
        match write {
            Write::Hold(hold) => {
                let kept = is_kept(&hold);
                Self::Hold(HoldRow::new(hold, kept))
            }
            Write::Extend(owner, until) => Self::Extend { owner: owner.to_wire(), until: to_micros(until) },
            Write::End(owner) => Self::End { owner: owner.to_wire() },
            Write::Place(place) => Self::Place(place.into()),
            Write::Leave(owner) => Self::Leave { owner: owner.to_wire() },
            Write::Tombstone(owner, until) => Self::Tombstone { owner: owner.to_wire(), until: to_micros(until) },
            Write::Limit(record, until) => {
                Self::Limit { record: record.to_string(), lim: record.limit().get(), until: to_micros(until) }
            }
            Write::Revocation(token, by, until) => {
                Self::Revocation { token: token.get(), by: by.to_wire().to_owned(), until: to_micros(until) }
            }
            Write::LastToken(token) => Self::LastToken { token },
        }
    }
}

impl NoticeRow {
    fn new(Notice { client, event }: Notice<Bell>) -> Self {
        let StoreEvent::Granted { lease, wanted, .. } = event else {
            return Self { client, owner: None, wanted: false };
        };
        Self { client, owner: Some(lease.owner.to_wire()), wanted }
    }
}
