//! The servers: who leads, who does not know of it, and who counts the leases down.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use lock_core::Moment;

use super::member::{Deposed, MEMBERS};
use super::store::Server;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{LeaseId, Say, whole_seconds};
use crate::ordered::Watch;

/// How far servers lag behind, in milliseconds.
const LAGS: [u64; 4] = [0, 0, 500, 5000];
/// How long one that is cut off does not learn of the next term.
const CUT_OFF_MAX: Duration = Duration::from_secs(25);
/// How long a server that has started does not know its leases: it reads its log.
const READS_FOR: Duration = Duration::from_secs(1);
/// How often the leader looks for leases that have ended.
const LOOKS_EVERY: u64 = 500_000_000;

impl Server {
    /// Which server a connection leads to.
    #[expect(clippy::cast_possible_truncation, reason = "it is the rest of a division")]
    pub(super) fn at(conn: ConnId) -> usize {
        (conn.0 % MEMBERS as u64) as usize
    }

    /// A server leads from now on, in the next term. All leases begin anew.
    pub(super) fn elect(&mut self, now: Moment, leader: usize) {
        (self.leader, self.term) = (leader, self.term + 1);
        for member in self.members.iter_mut().filter(|member| member.deposed == Deposed::No) {
            (member.term, member.ends) = (self.term, BTreeMap::new());
        }
        self.members[leader].ends = self.data.leases.iter().map(|(id, lasts)| (*id, now + *lasts)).collect();
    }

    /// Another server leads, and the one before does not know it. There is only one such at a time: the others are a majority.
    pub(super) fn depose(&mut self, now: Moment, dice: &mut Dice) -> Fault {
        (0..MEMBERS).for_each(|at| self.learn(now, at));
        let old = self.leader;
        let time = dice.between(Duration::from_secs(1), CUT_OFF_MAX);
        self.members[old].deposed = if dice.chance(500) { Deposed::Stuck } else { Deposed::CutOff(now + time) };
        self.elect(now, (old + dice.from(1, MEMBERS - 1)) % MEMBERS);
        Fault::PromotedBesideOld
    }

    /// A server learns that another one leads. It then has the leases ended that it takes for ended.
    fn learn(&mut self, now: Moment, at: usize) {
        let member = &mut self.members[at];
        if member.deposed == Deposed::No {
            return;
        }
        (member.deposed, member.term) = (Deposed::No, self.term);
        let ends = mem::take(&mut member.ends);
        for (id, _) in ends.into_iter().filter(|(_, end)| *end <= now) {
            if self.members[self.leader].ends.remove(&id).is_some() {
                self.faults.push(Fault::EndedByDeposed);
            }
            self.data.end(id);
        }
    }

    /// Whether a server can have something ordered.
    pub(super) fn can_order(&mut self, now: Moment, at: usize) -> bool {
        if self.members[at].deposed == Deposed::Stuck {
            self.learn(now, at);
        }
        self.members[at].deposed == Deposed::No
    }

    /// What happens by itself: servers learn who leads, and leases end.
    pub(super) fn pass_time(&mut self, now: Moment) {
        for at in 0..MEMBERS {
            if let Deposed::CutOff(until) = self.members[at].deposed
                && until <= now
            {
                self.learn(now, at);
            }
        }
        self.expire(now);
    }

    /// Leases end late, when the leader looks.
    pub(super) fn expire(&mut self, now: Moment) {
        let ends = &mut self.members[self.leader].ends;
        let looks = |end: Moment| Moment::from_nanos(end.as_nanos().div_ceil(LOOKS_EVERY) * LOOKS_EVERY);
        let is_late = ends.values().any(|end| *end <= now && now < looks(*end));
        let over: Vec<_> = ends.iter().filter(|(_, end)| looks(**end) <= now).map(|(id, _)| *id).collect();
        ends.retain(|_, end| now < looks(*end));
        self.faults.extend(is_late.then_some(Fault::ExpiredLate));
        over.into_iter().for_each(|id| self.data.end(id));
    }

    /// When the entry of a lease ends, as the leader has it.
    pub(super) fn end_of(&self, lease: LeaseId) -> Option<Moment> {
        self.members[self.leader].ends.get(&lease).copied()
    }

    /// A new lease.
    pub(super) fn grant(&mut self, now: Moment, time: Duration) -> LeaseId {
        self.last_lease += 1;
        let (id, lasts) = (LeaseId(self.last_lease), whole_seconds(time));
        self.data.leases.insert(id, lasts);
        self.members[self.leader].ends.insert(id, now + lasts);
        id
    }

    /// Renews leases at the leader, or at what this server believes to be the leader: itself.
    pub(super) fn keep_alive(&mut self, now: Moment, at: usize, ids: &[LeaseId]) -> Say {
        if self.knows_leases.is_some_and(|from| now < from) {
            self.faults.push(Fault::LeaseUnknown);
            return Say::KeptAlive(vec![None; ids.len()]);
        }
        let by = if self.members[at].deposed == Deposed::No { self.leader } else { at };
        self.faults.extend((by != self.leader).then_some(Fault::ServedByOld));
        let (leases, ends) = (&self.data.leases, &mut self.members[by].ends);
        let mut renew = |id: &LeaseId| {
            let lasts = *leases.get(id)?;
            *ends.get_mut(id)? = now + lasts;
            Some(lasts)
        };
        Say::KeptAlive(ids.iter().map(&mut renew).collect())
    }

    /// A server gets what the leader has.
    pub(super) fn catch_up(&mut self, at: usize) {
        let woken = self.members[at].replica.catch_up(&self.data.entries, self.data.revision);
        self.published.extend(woken.into_iter().map(Watch::wake));
    }

    /// Servers get what the leader has, each in its time.
    pub(super) fn replicate(&mut self, now: Moment) {
        for at in 0..MEMBERS {
            let member = &mut self.members[at];
            if member.deposed == Deposed::No && member.replica.is_due(now, self.data.revision) {
                let (before, is_late) = (self.published.len(), !member.replica.lag.is_zero());
                self.catch_up(at);
                self.faults.extend((is_late && before < self.published.len()).then_some(Fault::WatchLate));
            }
        }
    }

    /// From now on, servers lag behind like this.
    pub(super) fn lag(&mut self, dice: &mut Dice) -> Fault {
        for member in &mut self.members {
            member.replica.lag = dice.pick(&LAGS).map(Duration::from_millis).unwrap_or_default();
        }
        Fault::Lagged
    }

    /// A server has compacted what it has not told those who watch. They look again, if that reaches them.
    pub(super) fn compact(&mut self, dice: &mut Dice) -> Fault {
        let lost = self.members[dice.from(0, MEMBERS - 1)].replica.take_watches();
        self.published_later.extend(lost.into_iter().map(Watch::wake));
        Fault::Compacted
    }

    /// The servers start again, with what is stored. One of them leads.
    pub(super) fn start_with_data(&mut self, now: Moment) {
        self.members.iter_mut().for_each(|member| member.deposed = Deposed::No);
        self.elect(now, self.leader);
        self.knows_leases = Some(now + READS_FOR);
        for member in &mut self.members {
            member.replica.start_again(&self.data.entries, self.data.revision);
        }
    }
}
