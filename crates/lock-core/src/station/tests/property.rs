//! Random play: clients come, go, sleep and wait while the network delays, loses and repeats.
//!
//! A failure prints its steps, and keeps their seed in `proptest-regressions`, which later runs replay first.
//! `PROPTEST_CASES` sets the number of runs, and `PROPTEST_RNG_SEED` repeats them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::super::{Input, Join, Leaving, TurnId};
use super::rig::{self, millis, ttl};
use super::world::{CLIENTS, Way, World};
use crate::{
    Ability, Capabilities, Durability, Fairness, Mode, ModeKind, Note, OnUnavailable, Patience, Policy, RequestOrder,
    StoreEvent, Terms, Waiting,
};

/// Every way in which a store wakes waiters.
const WAITINGS: [Waiting; 3] = [Waiting::QueueWithPush, Waiting::Queue, Waiting::Poll];

/// Every third waiter gives up while the store is away.
fn on_unavailable(turn: TurnId) -> OnUnavailable {
    if turn.0.is_multiple_of(3) { OnUnavailable::Fail } else { OnUnavailable::Wait }
}

#[derive(Clone, Debug)]
enum Step {
    /// A client wants the lock.
    Join {
        client: usize,
        wait: Wait,
        max_requests: Option<NonZeroU32>,
        fairness: Fairness,
        ttl: &'static str,
        /// At a lock.
        mode: Mode,
        max_hold: Option<Duration>,
        /// How many permits it takes, at a semaphore.
        count: u32,
    },
    /// A waiter gives up, or a holder is done and may want the lock kept.
    Leave { client: usize, pick: usize, keep: Option<Duration> },
    /// A waiter is cancelled, although it may hold by now.
    Cancel { client: usize, pick: usize },
    /// A holder wants another ttl, and perhaps to read, to write, or to give back permits.
    Replace { client: usize, pick: usize, ttl: &'static str, mode: Mode, count: u32 },
    /// A holder detaches its lease.
    Detach { client: usize, pick: usize },
    /// A client wants to go on with a lease that was detached, which may be over, or adopted already.
    Adopt { client: usize, pick: usize, wait: Wait, max_hold: Option<Duration> },
    /// A request reaches the store.
    Carry { pick: usize },
    /// An answer reaches its client.
    Answer { pick: usize },
    /// A request or an answer is lost.
    Lose { pick: usize },
    /// A request fails at once.
    Fail { pick: usize },
    /// An event reaches its client, and may do so again later.
    Tell { pick: usize, again: Again },
    /// An event is lost.
    Miss { pick: usize },
    /// A hint for no reason.
    Hint { client: usize, event: StoreEvent },
    /// Everything in flight arrives, a few times over, in the order in which it was sent.
    Flow { rounds: usize },
    /// A client tries again and again, and the store does not answer.
    Silence { client: usize, tries: usize },
    /// Time passes for all.
    Pass { millis: u64 },
    /// Time passes, and one client does not notice.
    Sleep { client: usize, millis: u64 },
}

#[derive(Clone, Copy, Debug)]
enum Wait {
    Not,
    For(u64),
    Forever,
}

#[derive(Clone, Copy, Debug)]
enum Again {
    Never,
    Later,
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    let pick = any::<usize>();
    let wait = prop_oneof![Just(Wait::Not), (1..5_000_u64).prop_map(Wait::For), Just(Wait::Forever)];
    let ttls = prop_oneof![4 => Just("3s"), 1 => Just("30s")];
    let longer = prop_oneof![Just("3s"), Just("4s"), Just("30s")];
    let modes = prop_oneof![Just(Mode::Exclusive), Just(Mode::Shared)];
    let counts = prop_oneof![3 => Just(1), 1 => 2..5_u32];
    let max_requests =
        proptest::option::weighted(0.2, (1..4_u32).prop_map(|max_requests| NonZeroU32::new(max_requests).unwrap()));
    let fairness = prop_oneof![3 => Just(Fairness::Fair), 1 => Just(Fairness::Barging)];
    let max_hold = proptest::option::weighted(0.2, (1..5_000_u64).prop_map(millis));
    let keep = proptest::option::weighted(0.3, (1..10_000_u64).prop_map(millis));
    let again = prop_oneof![3 => Just(Again::Never), 1 => Just(Again::Later)];
    let name = || "a".parse().unwrap();
    let hints = [
        StoreEvent::RecheckAll,
        StoreEvent::Freed { name: name() },
        StoreEvent::Wanted { name: name() },
        StoreEvent::Revoked { name: name() },
    ];
    let hints = proptest::sample::select(hints.to_vec());
    let long = prop_oneof![4 => 0..200_u64, 2 => 200..2_000_u64, 1 => 2_000..40_000_u64];
    let (whom, (mode, count)) = (client.clone(), (modes.clone(), counts.clone()));
    let joins = (whom, wait.clone(), max_requests, fairness, ttls, mode, max_hold.clone(), count);
    prop_oneof![
        6 => joins.prop_map(|(client, wait, max_requests, fairness, ttl, mode, max_hold, count)| {
            Step::Join { client, wait, max_requests, fairness, ttl, mode, max_hold, count }
        }),
        3 => (client.clone(), pick, keep).prop_map(|(client, pick, keep)| Step::Leave { client, pick, keep }),
        1 => (client.clone(), pick).prop_map(|(client, pick)| Step::Cancel { client, pick }),
        2 => (client.clone(), pick, longer, modes, counts).prop_map(|(client, pick, ttl, mode, count)| {
            Step::Replace { client, pick, ttl, mode, count }
        }),
        1 => (client.clone(), pick).prop_map(|(client, pick)| Step::Detach { client, pick }),
        1 => (client.clone(), pick, wait, max_hold).prop_map(|(client, pick, wait, max_hold)| {
            Step::Adopt { client, pick, wait, max_hold }
        }),
        5 => pick.prop_map(|pick| Step::Carry { pick }),
        5 => pick.prop_map(|pick| Step::Answer { pick }),
        1 => pick.prop_map(|pick| Step::Lose { pick }),
        1 => pick.prop_map(|pick| Step::Fail { pick }),
        3 => (pick, again).prop_map(|(pick, again)| Step::Tell { pick, again }),
        1 => pick.prop_map(|pick| Step::Miss { pick }),
        1 => (client.clone(), hints).prop_map(|(client, event)| Step::Hint { client, event }),
        4 => (1..4_usize).prop_map(|rounds| Step::Flow { rounds }),
        1 => (client.clone(), 1..8_usize).prop_map(|(client, tries)| Step::Silence { client, tries }),
        4 => long.clone().prop_map(|millis| Step::Pass { millis }),
        1 => (client, long).prop_map(|(client, millis)| Step::Sleep { client, millis }),
    ]
}

impl World {
    fn play(&mut self, step: Step) {
        match step {
            Step::Join { client, wait, max_requests, fairness, ttl, mode, max_hold, count } => {
                self.play_join(client, wait, max_requests, fairness, self.terms(ttl, mode, count), max_hold);
            }
            Step::Leave { client, pick, keep } => {
                if let Some(turn) = self.pick_turn(client, pick) {
                    self.leave(client, Leaving { turn, keep: keep.and_then(rig::keep) });
                }
            }
            Step::Cancel { client, pick } => {
                if let Some(turn) = self.pick_turn(client, pick) {
                    self.cancel(client, turn);
                }
            }
            Step::Replace { client, pick, ttl, mode, count } => {
                if let Some(turn) = self.pick_holder(client, pick) {
                    self.replace(client, turn, self.terms(ttl, mode, count));
                }
            }
            Step::Detach { client, pick } => {
                if let Some(turn) = self.pick_holder(client, pick) {
                    self.feed(client, Input::Detach(turn));
                }
            }
            Step::Adopt { client, pick, wait, max_hold } => self.play_adopt(client, pick, wait, max_hold),
            Step::Carry { pick } => _ = self.pick(pick, in_flight).map(|index| self.carry(index)),
            Step::Answer { pick } => _ = self.pick(pick, answered).map(|index| self.answer(index)),
            Step::Fail { pick } => {
                _ = self.pick(pick, |way| matches!(way, Way::There)).map(|index| self.fail(index));
            }
            Step::Lose { pick } => {
                let index = self.pick(pick, |way| matches!(way, Way::There | Way::Back(_)));
                _ = index.map(|index| self.net[index].way = Way::Lost);
            }
            Step::Tell { pick, again } => self.play_tell(pick, again),
            Step::Miss { pick } => _ = self.pick_news(pick).map(|index| self.store.news.remove(index)),
            Step::Hint { client, event } => self.event(client, &event),
            Step::Flow { rounds } => self.flow(rounds),
            Step::Silence { client, tries } => self.play_silence(client, tries),
            Step::Pass { millis: time } => self.pass(millis(time), None),
            Step::Sleep { client, millis: time } => self.pass(millis(time), Some(client)),
        }
    }

    /// One of a client's waiters and holders.
    fn pick_turn(&self, client: usize, pick: usize) -> Option<TurnId> {
        let there = &self.clients[client];
        let mut turns = there.waiters.keys().chain(there.holders.keys()).copied();
        let among = there.waiters.len() + there.holders.len();
        turns.nth(pick % among.max(1))
    }

    fn pick_holder(&self, client: usize, pick: usize) -> Option<TurnId> {
        let holders: Vec<_> = self.clients[client].holders.keys().copied().collect();
        holders.get(pick % holders.len().max(1)).copied()
    }

    fn play_adopt(&mut self, client: usize, pick: usize, wait: Wait, max_hold: Option<Duration>) {
        let Some(ticket) = self.tickets.get(pick % self.tickets.len().max(1)).cloned() else { return };
        let terms = Terms { mode: ticket.mode(), ttl: ttl("3s") };
        let join = Join { terms, max_hold, ..self.new_join(wait) };
        self.adopt(client, join, ticket);
    }

    fn new_join(&mut self, wait: Wait) -> Join {
        let (turn, patience) = (self.next_turn(), self.patience(wait));
        let on_unavailable = on_unavailable(turn);
        Join { patience, on_unavailable, ..Join::new(turn, Note::from_wire("1@test")) }
    }

    fn patience(&self, wait: Wait) -> Patience {
        match wait {
            Wait::Not => Patience::Never,
            Wait::For(time) => Patience::within(self.now, millis(time)),
            Wait::Forever => Patience::Forever,
        }
    }

    fn play_join(
        &mut self,
        client: usize,
        wait: Wait,
        max_requests: Option<NonZeroU32>,
        fairness: Fairness,
        terms: Terms,
        max_hold: Option<Duration>,
    ) {
        let join = Join { terms, max_requests, fairness, max_hold, ..self.new_join(wait) };
        self.join(client, join);
    }

    /// These permits, as far as there are as many, or a lease of this mode.
    fn terms(&self, length: &str, mode: Mode, count: u32) -> Terms {
        let permits = |limit: u32| Mode::permits(count.min(limit), limit).unwrap();
        let mode = match self.limit {
            Some(limit) => permits(limit),
            None => mode,
        };
        Terms { mode, ttl: ttl(length) }
    }

    fn play_tell(&mut self, pick: usize, again: Again) {
        let Some(index) = self.pick_news(pick) else { return };
        let (client, event) = match again {
            Again::Never => self.store.news.remove(index),
            Again::Later => self.store.news[index].clone(),
        };
        self.event(client, &event);
    }

    fn flow(&mut self, rounds: usize) {
        for _ in 0..rounds {
            while let Some(index) = self.net.iter().position(|letter| in_flight(&letter.way)) {
                self.carry(index);
            }
            for (client, event) in std::mem::take(&mut self.store.news) {
                self.event(client, &event);
            }
            while let Some(index) = self.net.iter().position(|letter| answered(&letter.way)) {
                self.answer(index);
            }
        }
    }

    fn play_silence(&mut self, client: usize, tries: usize) {
        for _ in 0..tries {
            self.play_join(client, Wait::Not, None, Fairness::Fair, self.terms("30s", Mode::Exclusive, 1), None);
            for letter in self.net.iter_mut().filter(|letter| matches!(letter.way, Way::There | Way::Back(_))) {
                letter.way = Way::Lost;
            }
            self.pass(millis(1_100), None);
        }
    }

    fn carry_and_answer_last(&mut self) {
        let last = self.net.len() - 1;
        self.carry(last);
        self.answer(last);
    }

    fn pick(&self, pick: usize, which: fn(&Way) -> bool) -> Option<usize> {
        let fitting: Vec<_> = (0..self.net.len()).filter(|index| which(&self.net[*index].way)).collect();
        fitting.get(pick % fitting.len().max(1)).copied()
    }

    fn pick_news(&self, pick: usize) -> Option<usize> {
        let count = self.store.news.len();
        (count > 0).then(|| pick % count)
    }
}

fn in_flight(way: &Way) -> bool {
    matches!(way, Way::There | Way::Ghost)
}

fn answered(way: &Way) -> bool {
    matches!(way, Way::Back(_))
}

fn policy(waiting: Waiting, ordering: RequestOrder, chain: u32) -> Policy {
    let capabilities = Capabilities::new("model", waiting, Durability::Process).with_ordering(ordering);
    let able = capabilities.with_abilities(&[Ability::Keep, Ability::Replace, Ability::Barge]);
    let mut policy = Policy::new(able.with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits]));
    policy.chain = chain;
    policy
}

fn policies() -> impl Strategy<Value = Policy> {
    let orderings = prop_oneof![Just(RequestOrder::InOrder), Just(RequestOrder::Unordered)];
    let chains = prop_oneof![Just(16), 0..3_u32];
    (proptest::sample::select(&WAITINGS), orderings, chains)
        .prop_map(|(waiting, ordering, chain)| policy(waiting, ordering, chain))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_one_holds_and_in_the_end_everybody_did(
        policy in policies(),
        seed in any::<u64>(),
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        play(World::new(policy, None, seed), steps);
    }

    #[test]
    fn whatever_happens_no_more_permits_are_held_than_there_are_and_in_the_end_everybody_had_some(
        policy in policies(),
        limit in prop_oneof![1..5_u32, Just(40)],
        seed in any::<u64>(),
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        play(World::new(policy, Some(limit), seed), steps);
    }
}

/// Plays the steps, and then lets everything come to rest.
fn play(mut world: World, steps: Vec<Step>) {
    for step in steps {
        world.play(step);
    }
    world.heal();
    assert!(world.is_at_rest(), "somebody still waits or holds: {world:?}");
    // After the longest ttl, what late claims left at the store has expired, and nothing new is left.
    world.pass(Duration::from_secs(31), None);
    assert!(world.store.is_over(world.now), "the store still holds something: {:?}", world.store);
    for client in 0..CLIENTS {
        world.play_join(client, Wait::Forever, None, Fairness::Fair, world.terms("3s", Mode::Exclusive, 1), None);
    }
    world.heal();
    assert!(world.is_at_rest() && world.store.is_empty(), "something was left behind: {world:?}");
}

/// A client that slept gets the event about an ended lease only after it has asked again.
#[test]
fn late_events_about_an_ended_lease_admit_nobody() {
    let mut world = World::new(policy(Waiting::QueueWithPush, RequestOrder::Unordered, 16), None, 1);
    for client in [0, 1] {
        world.play_join(client, Wait::Forever, None, Fairness::Fair, world.terms("3s", Mode::Exclusive, 1), None);
        world.flow(1);
    }
    let first = *world.clients[0].holders.keys().next().unwrap();
    world.leave(0, Leaving::now(first));
    world.carry(0);
    // The lock was handed to the second client, which sleeps until its lease has ended and the third one holds.
    world.pass(millis(4_000), Some(1));
    world.play_join(2, Wait::Forever, None, Fairness::Fair, world.terms("3s", Mode::Exclusive, 1), None);
    world.carry_and_answer_last();
    world.pass(millis(1), None);
    world.carry_and_answer_last();
    assert!(!world.clients[2].holders.is_empty());
    let (client, event) = world.store.news.remove(0);
    world.event(client, &event);
    assert!(world.clients[1].holders.is_empty());
    world.heal();
    assert!(world.is_at_rest());
}

/// Readers of one client overlap all the time. When a writer elsewhere has its place in the store's queue, the readers finish
/// their work, and nobody joins them for longer than the store's answer counts.
#[test]
fn overlapping_readers_let_a_writer_elsewhere_in_within_one_generation() {
    const WORK: Duration = Duration::from_millis(10);
    for waiting in [Waiting::QueueWithPush, Waiting::Queue] {
        let mut world = World::new(policy(waiting, RequestOrder::InOrder, 16), None, 1);
        let (came_at, mut begun) = (world.now + millis(100), BTreeMap::new());
        let done_at = loop {
            if world.now == came_at {
                world.play_join(1, Wait::Forever, None, Fairness::Fair, world.terms("3s", Mode::Exclusive, 1), None);
            }
            world.play_join(0, Wait::Forever, None, Fairness::Fair, world.terms("3s", Mode::Shared, 1), None);
            world.flow(3);
            for turn in world.clients[0].holders.keys().copied().collect::<Vec<_>>() {
                if world.now.since(*begun.entry(turn).or_insert(world.now)) >= WORK {
                    world.leave(0, Leaving::now(turn));
                }
            }
            world.flow(3);
            if world.clients[0].holders.is_empty() {
                break world.now;
            }
            world.pass(millis(1), None);
        };
        assert!(done_at.since(came_at) <= WORK + millis(21), "{:?}", done_at.since(came_at));
        assert!(begun.len() >= 100, "{} have read", begun.len());
        world.heal();
        assert!(world.is_at_rest());
    }
}
