//! How a primary is replaced, and what happens to the one before.

use std::time::Duration;

use super::deed::Deed;
use super::node::{Memory, Role};
use super::servers::{Promise, Replicated};
use super::topology::{Chosen, SENTINELS};
use crate::env::Plan;
use crate::fault::Fault;
use crate::network::StoreId;
use crate::world::World;

/// How long an old primary goes on in a planned fail-over at most, and how long one that is cut off from the sentinels.
const GOES_ON_MAX: Duration = Duration::from_secs(10);
const CUT_OFF_MAX: Duration = Duration::from_secs(40);
/// How long a primary is down until another one is chosen, in milliseconds.
const DETECTED_WITHIN: (u64, u64) = (500, 2000);
/// How long it takes until the other replicas follow the new primary, in milliseconds.
const REPOINTED_WITHIN: (u64, u64) = (0, 10_000);
/// How long a replica loads the data of its primary, in milliseconds.
const LOADED_WITHIN: (u64, u64) = (1, 1000);
/// How long it takes until a sentinel knows of a new primary; and one that is cut off from the others.
const TOLD_SOON: (u64, u64) = (0, 20);
const TOLD_WITHIN: (u64, u64) = (0, 10_000);
const TOLD_LATE: (u64, u64) = (5000, 30_000);

impl World<Replicated> {
    pub(super) fn do_deed(&mut self, deed: Deed) {
        match deed {
            Deed::TakeIn(replica) => self.take_in(replica),
            Deed::GiveUp(conn, tag) => self.give_up(conn, tag),
            Deed::FailOver => self.fail_over(),
            Deed::Replace => self.replace(),
            Deed::Choose => self.choose(),
            Deed::Repoint(node) => self.repoint(node),
            Deed::Announce(sentinel) => {
                self.processes.values_mut().for_each(|process| process.backend.announced(sentinel));
            }
            Deed::Return(node) => self.come_back(node),
        }
    }

    pub(super) fn plan(&mut self, after: (u64, u64), deed: Deed) -> Duration {
        let after = self.env.dice.millis(after.0, after.1);
        self.stores.deeds.plan(&mut self.env, after, deed);
        after
    }

    /// A planned fail-over, or the primary is cut off from the sentinels. It goes on until they reach it.
    pub(super) fn replace(&mut self) {
        let old = self.stores.chosen.primary;
        if self.stores.is_failing || self.stores.replicas_of(old).is_empty() {
            return;
        }
        self.env.fired(Fault::PromotedBesideOld);
        self.choose();
        let most = if self.env.dice.chance(200) { CUT_OFF_MAX } else { GOES_ON_MAX };
        let after = self.env.dice.between(Duration::ZERO, most);
        self.stores.deeds.plan(&mut self.env, after, Deed::Repoint(old));
    }

    /// The primary ends. A replica is chosen, or it is back before that.
    pub(super) fn crash(&mut self) {
        let old = self.stores.chosen.primary;
        if self.stores.is_failing {
            return;
        }
        self.stores.is_failing = true;
        self.end(old);
        self.stores.nodes[old.0].is_up = false;
        if self.stores.replicas_of(old).is_empty() || self.env.dice.chance(400) {
            self.plan(DETECTED_WITHIN, Deed::Return(old));
            return;
        }
        let after = self.plan(DETECTED_WITHIN, Deed::Choose) + self.env.dice.millis(100, 10_000);
        self.stores.deeds.plan(&mut self.env, after, Deed::Return(old));
    }

    /// All connections of a server end.
    fn end(&mut self, node: StoreId) {
        self.stores.blocked.retain(|_, blocked| blocked.at != node);
        self.env.network.store_ended(self.env.now, &mut self.env.dice, node);
    }

    /// Some replica becomes the primary, with what it has.
    fn choose(&mut self) {
        let old = self.stores.chosen.primary;
        let Some(new) = self.env.dice.pick(&self.stores.replicas_of(old)) else { return };
        if self.stores.nodes[new.0].offset < self.stores.nodes[old.0].offset {
            self.env.fired(Fault::PromotedBehind);
        }
        let epoch = self.stores.chosen.epoch + 1;
        self.stores.nodes[new.0].promote(self.env.now, epoch);
        self.stores.chosen = Chosen { primary: new, epoch };
        self.stores.is_failing = false;
        let late = if self.env.dice.chance(300) { TOLD_LATE } else { TOLD_WITHIN };
        for (number, sentinel) in SENTINELS.into_iter().enumerate() {
            let within = if self.env.dice.chance(500) { TOLD_SOON } else { late };
            let after = self.plan(within, Deed::Announce(sentinel));
            self.stores.sentinels[number].hears(self.env.now + after, self.stores.chosen);
        }
        for replica in self.stores.replicas_of(old) {
            self.plan(REPOINTED_WITHIN, Deed::Repoint(replica));
        }
    }

    /// A server follows the present primary, and loads its data. If it was a primary, its connections end.
    fn repoint(&mut self, node: StoreId) {
        let primary = self.stores.chosen.primary;
        if node == primary || !self.stores.nodes[node.0].is_up {
            return;
        }
        if let Role::Primary(_) = self.stores.nodes[node.0].role {
            self.end(node);
        }
        self.stores.nodes[node.0].follow(primary);
        self.load(node, LOADED_WITHIN);
    }

    /// A replica gets all of its primary's data.
    pub(super) fn load(&mut self, replica: StoreId, within: (u64, u64)) {
        let Role::Replica(primary) = self.stores.nodes[replica.0].role else { return };
        let entry = self.stores.nodes[primary.0].entry();
        let now = self.env.now;
        let at = self.stores.nodes[replica.0].send(now + self.env.dice.millis(within.0, within.1), entry);
        self.stores.deeds.plan(&mut self.env, at.since(now), Deed::TakeIn(replica));
    }

    /// A server is back. If it was replaced meanwhile, it is a primary all the same until the sentinels reach it.
    fn come_back(&mut self, node: StoreId) {
        let (fault, memory) = match self.env.dice.from(0, 3) {
            0 => (Fault::RestartedEmpty, Memory::Nothing),
            1 => (Fault::RestartedWithData, Memory::All),
            _ => (Fault::RestartedFromCopy, Memory::Older),
        };
        self.env.fired(fault);
        self.stores.nodes[node.0].restart(self.env.now, memory, &mut self.env.dice);
        if node == self.stores.chosen.primary {
            self.stores.is_failing = false;
            for replica in self.stores.replicas_of(node) {
                self.stores.nodes[replica.0].follow(node);
                self.load(replica, LOADED_WITHIN);
            }
        } else if self.stores.promise == Promise::DwellAlone {
            self.repoint(node);
        } else {
            let after = self.env.dice.between(Duration::ZERO, GOES_ON_MAX);
            self.stores.deeds.plan(&mut self.env, after, Deed::Repoint(node));
        }
    }

    /// All servers are up, and follow one primary that all sentinels know.
    pub(super) fn heal_servers(&mut self) {
        let now = self.env.now;
        self.env.cancel(|plan| matches!(plan, Plan::Cue(_)));
        self.stores.deeds.clear();
        for node in 0..self.stores.nodes.len() {
            if !self.stores.nodes[node].is_up {
                self.stores.nodes[node].restart(now, Memory::All, &mut self.env.dice);
            }
            self.stores.nodes[node].lags_until = now;
        }
        (self.stores.is_failing, self.stores.is_calm) = (false, true);
        for node in (0..self.stores.nodes.len()).map(StoreId) {
            self.repoint(node);
        }
        self.end(self.stores.chosen.primary);
        let chosen = self.stores.chosen;
        self.stores.sentinels.iter_mut().for_each(|sentinel| sentinel.hears(now, chosen));
    }
}
