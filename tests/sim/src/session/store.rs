//! The servers: a leader, and the followers that clients are connected to.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;

use lock_core::latch::LatchState;
use lock_core::{Capabilities, EntriesEnd, Lease, LockName, ModeKind, Moment, Owner, Slots, StoreEvent, WriteSide};

use super::data::Data;
use crate::client::Usage;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{Ask, Inbox, Listeners, Mistake, Model, Order, Outcome, SessionId, Stored, micros};
use crate::ordered::{Entry, Replica};

/// How many followers there are. A connection leads to one of them.
pub(super) const FOLLOWERS: usize = 4;

/// The store, and who is connected.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) data: Data,
    pub(super) followers: [Replica<SessionId>; FOLLOWERS],
    /// Who has sent something to each of them since the leader's last ping.
    pub(super) touched: [BTreeSet<SessionId>; FOLLOWERS],
    /// When the leader has last pinged them, if it has.
    pub(super) pinged: Option<Moment>,
    pub(super) conns: BTreeMap<ConnId, SessionId>,
    pub(super) listeners: Listeners,
    /// The connections of a follower that has ended.
    pub(super) dropped: Vec<ConnId>,
    pub(super) faults: Vec<Fault>,
    pub(super) mistake: Option<Mistake>,
    pub(super) granted: Vec<Lease>,
    pub(super) published: Vec<(Inbox, StoreEvent)>,
}

impl Model for Server {
    type Data = Data;

    const TTLS: &'static [Duration] =
        &[Duration::from_millis(600), Duration::from_secs(3), Duration::from_secs(3), Duration::from_secs(12)];
    const REPEATS: &'static [u32] = &[0, 50];
    const ORDER: Order = Order::OfThoseWhoListen;
    const TOLD: u32 = 1000;
    const READS_THE_PAST: bool = true;

    fn new(dice: &mut Dice, mistake: Option<Mistake>) -> Self {
        let mut new = Self { mistake, ..Self::default() };
        new.lag(dice);
        new
    }

    fn can(capabilities: Capabilities) -> Capabilities {
        let can = capabilities.with_modes(&[ModeKind::Exclusive, ModeKind::Shared]).with_write_side(WriteSide::Apart);
        can.with_entries_end(EntriesEnd::WithSession)
    }

    fn usage(dice: &mut Dice) -> Usage {
        if dice.chance(500) { Usage::Mutex } else { Usage::ReadWrite }
    }

    fn ask(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Outcome {
        self.pass_time(now);
        let say = self.answer(now, conn, ask);
        self.replicate(now);
        Outcome { say, published: mem::take(&mut self.published), granted: mem::take(&mut self.granted) }
    }

    fn heard_on(&self, inbox: Inbox) -> BTreeSet<ConnId> {
        self.listeners.on(inbox)
    }

    fn closed(&mut self, conn: ConnId) {
        self.leave(conn);
    }

    fn data(&self) -> &Data {
        &self.data
    }

    fn flush(&mut self, now: Moment) {
        self.restored(Data::default(), micros(now).max(self.data.counter));
    }

    /// With its own data, sessions go on from now. With earlier ones, they have ended.
    fn start_again(&mut self, now: Moment, data: Data) {
        self.listeners.clear();
        self.conns.clear();
        self.pinged = Some(now);
        if data.version != self.data.version {
            return self.restored(data, micros(now));
        }
        self.data.sessions.values_mut().for_each(|session| session.heard = now);
        self.followers_start_again();
    }

    /// From now on a session refuses to release anything. Besides, something happens to the followers.
    fn go_wrong(&mut self, now: Moment, dice: &mut Dice) -> Option<Fault> {
        self.expire(now);
        let besides = if dice.chance(300) { self.lag(dice) } else { self.lose_follower(dice) };
        self.faults.push(besides);
        let ids: Vec<_> = self.data.sessions.keys().copied().collect();
        let session = self.data.sessions.get_mut(&dice.pick(&ids)?)?;
        session.refuses = true;
        Some(Fault::ReleasesRefused)
    }

    fn heal(&mut self) {
        self.followers.iter_mut().for_each(|follower| follower.lag = Duration::ZERO);
    }

    fn take_faults(&mut self) -> Vec<Fault> {
        mem::take(&mut self.faults)
    }

    fn take_dropped(&mut self) -> Vec<ConnId> {
        mem::take(&mut self.dropped)
    }

    fn oversleeps(&self) -> Option<String> {
        let asleep = self.followers.iter().find_map(Replica::oversleeps);
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
        let stored = |entry: &Entry<SessionId>| {
            let until = self.data.sessions.get(&entry.tie)?.ends(self.timeout());
            (now < until).then(|| Stored { owner: entry.owner(), tokens: entry.tokens, slots: Slots::NONE, until })
        };
        self.data.entries.holders(name).filter_map(stored).collect()
    }

    /// Everybody is at rest, so an entry that is left is one that nobody wants.
    fn left_over(&mut self, now: Moment, _: &[LockName]) -> Option<String> {
        self.expire(now);
        self.data.entries.all().first().map(|entry| format!("{entry:?}"))
    }
}
