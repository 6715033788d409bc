//! The store, and who is connected.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use lock_core::latch::LatchState;
use lock_core::{Ability, Capabilities, EntriesEnd, Lease, LockName, ModeKind, Moment, Owner, Slots, StoreEvent};

use super::data::{Data, Tie};
use super::member::{MEMBERS, Member};
use crate::client::Usage;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{Ask, Inbox, LeaseId, Listeners, Mistake, Model, Order, Outcome, Stored, micros};
use crate::ordered::Entry;

/// The store, and who is connected.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) data: Data,
    pub(super) members: [Member; MEMBERS],
    pub(super) leader: usize,
    pub(super) term: u64,
    pub(super) last_lease: u64,
    /// From when on the leases are known, after a start.
    pub(super) knows_leases: Option<Moment>,
    /// The keys that entries have had.
    pub(super) keys: BTreeSet<LeaseId>,
    pub(super) listeners: Listeners,
    pub(super) faults: Vec<Fault>,
    pub(super) mistake: Option<Mistake>,
    pub(super) granted: Vec<Lease>,
    pub(super) published: Vec<(Inbox, StoreEvent)>,
    /// What is told with the next request.
    pub(super) published_later: Vec<(Inbox, StoreEvent)>,
}

impl Model for Server {
    type Data = Data;

    const TTLS: &'static [Duration] =
        &[Duration::from_millis(600), Duration::from_secs(3), Duration::from_secs(3), Duration::from_secs(20)];
    const REPEATS: &'static [u32] = &[0];
    const ORDER: Order = Order::OfThoseWhoListen;
    const TOLD: u32 = 1000;
    const HAS_LEASES: bool = true;

    fn new(dice: &mut Dice, mistake: Option<Mistake>) -> Self {
        let mut new = Self { mistake, ..Self::default() };
        new.lag(dice);
        new
    }

    fn can(capabilities: Capabilities) -> Capabilities {
        let can = capabilities.with_modes(&[ModeKind::Exclusive, ModeKind::Shared]);
        can.with_abilities(&[Ability::Keep]).with_entries_end(EntriesEnd::WithTtl)
    }

    fn usage(dice: &mut Dice) -> Usage {
        if dice.chance(700) { Usage::Mutex } else { Usage::ReadWrite }
    }

    fn ask(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Outcome {
        self.pass_time(now);
        let told = mem::take(&mut self.published_later);
        self.published.extend(told);
        let say = self.answer(now, conn, ask);
        self.replicate(now);
        Outcome { say, published: mem::take(&mut self.published), granted: mem::take(&mut self.granted) }
    }

    fn heard_on(&self, inbox: Inbox) -> BTreeSet<ConnId> {
        self.listeners.on(inbox)
    }

    fn closed(&mut self, conn: ConnId) {
        self.listeners.closed(conn);
        if self.members[Self::at(conn)].replica.closed(conn) {
            self.faults.push(Fault::WatchLost);
        }
    }

    fn data(&self) -> &Data {
        &self.data
    }

    /// All keys are deleted. The leases live.
    fn flush(&mut self, now: Moment) {
        self.data.delete(|_| true);
        self.data.buried.clear();
        self.data.counter = micros(now).max(self.data.counter);
    }

    /// With earlier data, the base of the tokens is raised.
    fn start_again(&mut self, now: Moment, data: Data) {
        self.listeners.clear();
        if data.revision != self.data.revision {
            let before = mem::replace(&mut self.data, data);
            self.data.raise(before.counter.max(micros(now)));
            self.granted.extend(self.data.entries.all().iter().map(Entry::lease));
        }
        self.start_with_data(now);
    }

    fn go_wrong(&mut self, now: Moment, dice: &mut Dice) -> Option<Fault> {
        self.expire(now);
        Some(match dice.from(0, 5) {
            0 => self.lag(dice),
            1 => self.compact(dice),
            _ => self.depose(now, dice),
        })
    }

    fn heal(&mut self) {
        self.members.iter_mut().for_each(|member| member.replica.lag = Duration::ZERO);
    }

    fn take_faults(&mut self) -> Vec<Fault> {
        mem::take(&mut self.faults)
    }

    fn oversleeps(&self) -> Option<String> {
        let asleep = self.members.iter().find_map(|member| member.replica.oversleeps());
        asleep.map(|watch| format!("{watch:?}"))
    }

    fn latches() -> Vec<LockName> {
        Vec::new()
    }

    fn latch(&mut self, _: Moment, _: &LockName) -> Option<LatchState> {
        None
    }

    fn owners(&self) -> BTreeSet<Owner> {
        self.data.entries.all().iter().map(Entry::owner).collect()
    }

    fn holds(&self, now: Moment, name: &LockName) -> Vec<Stored> {
        let stored = |entry: &Entry<Tie>| {
            let until = self.end_of(entry.tie.lease).filter(|until| now < *until)?;
            Some(Stored { owner: entry.owner(), tokens: entry.tokens, slots: Slots::NONE, until })
        };
        self.data.entries.holders(name).filter_map(stored).collect()
    }

    /// Everybody is at rest, so an entry that is left is one that nobody wants.
    fn left_over(&mut self, now: Moment, _: &[LockName]) -> Option<String> {
        self.expire(now);
        self.data.entries.all().first().map(|entry| format!("{entry:?}"))
    }
}
