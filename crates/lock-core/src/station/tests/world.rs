//! A few clients of one lock, the store, and the network between them, in virtual time.
//!
//! Whatever happens, the world checks what must always hold: see [`World::check`] and [`World::carry_out`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::attempt::{Attempt, LeaseUse, Place};
use super::super::progress::Progress;
use super::super::releases::{Of, PendingRelease};
use super::super::{ActionId, Event, Input, Join, Leaving, Output, Owners, Reply, Request, Station, TurnId};
use super::model::Store;
use crate::policy::{ATTEMPTS_MAX, WANTED_FRESH_FOR};
use crate::{
    BackendError, Batch, Certainty, Claim, Effect, ErrorKind, Fairness, Hold, Keep, Keeper, Lease, Mode, Moment,
    NameKind, Operation, Owner, Patience, Policy, ReleaseRequest, Released, Renewed, StoreEvent, Terms, Ticket,
    Waiting,
};

/// How many clients there are.
pub(super) const CLIENTS: usize = 3;
/// How many unanswered releases a station may have.
const OWED_MAX: usize = 4;
/// How many rounds the healed world may need.
const ROUNDS_MAX: usize = 20_000;

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Moment,
    pub(super) store: Store,
    pub(super) clients: Vec<Client>,
    /// Requests and answers on their way.
    pub(super) net: Vec<Letter>,
    turns: u64,
    /// How many permits there are, if the name is used as a semaphore.
    pub(super) limit: Option<u32>,
    /// The highest token of any admission, for each slot. A lock has one.
    admitted: BTreeMap<u32, u64>,
    /// The highest token of any exclusive turn.
    written: u64,
    /// Until when the lock is kept after its release, as its last holder sees it.
    kept_until: Moment,
    /// Of the leases that were detached.
    pub(super) tickets: Vec<Ticket>,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) station: Station,
    keeper: Keeper,
    pub(super) waiters: BTreeMap<TurnId, Join>,
    /// Those of the waiters that want to adopt a lease.
    adopting: BTreeSet<TurnId>,
    /// The turn that gives up at this moment.
    leaving: Option<TurnId>,
    pub(super) holders: BTreeMap<TurnId, Arc<Hold>>,
    /// Holders that want to go on under other terms. One that wants to read writes nothing any more.
    replacing: BTreeMap<TurnId, Mode>,
    /// The owner whose renewal was last asked for before it was due, and when.
    urgent: Option<(Owner, Moment)>,
    /// The owners whose releases said that a claim may still arrive.
    parted: BTreeSet<Owner>,
    /// Until when released locks are kept.
    keeping: BTreeMap<Owner, Moment>,
    reported: EventCounts,
}

/// How many events of each kind observers received.
#[derive(Debug, Default)]
struct EventCounts {
    joined: usize,
    acquired: usize,
    not_acquired: usize,
    ended: usize,
    /// Releases that were not confirmed at once, less those that were later or were given up.
    pending: usize,
}

impl EventCounts {
    fn count(&mut self, event: &Event) {
        match event {
            Event::Acquired { .. } => self.acquired += 1,
            Event::NotAcquired { .. } => self.not_acquired += 1,
            Event::Lost { .. } | Event::Detached { .. } | Event::Released { pending: None, .. } => self.ended += 1,
            Event::ReleasePending { .. } => (self.ended, self.pending) = (self.ended + 1, self.pending + 1),
            Event::Released { pending: Some(_), .. } | Event::ReleaseGivenUp { .. } => self.pending -= 1,
            Event::WaitingLong { .. } | Event::RenewedLate { .. } | Event::Degraded { .. } => {}
            Event::RequestFailed { .. } | Event::StoreUnavailable { .. } | Event::StoreAvailable { .. } => {}
        }
    }

    /// Each wait, each hold and each pending release is reported once when it begins and once when it ends.
    fn check(&self, station: &Station) {
        let waits =
            station.waiters.iter().count() + station.adopters.iter().map(|queue| queue.iter().count()).sum::<usize>();
        assert_eq!(self.joined - self.acquired - self.not_acquired, waits, "a wait ends once: {self:?}");
        let holds: usize = station.leases.iter().map(|held| held.turns.len()).sum();
        let ended = || station.releases.0.iter().filter_map(|pending| pending.ended);
        let first_try = ended().filter(|ended| ended.failed_at.is_none()).count();
        assert_eq!(self.acquired - self.ended, holds + first_try, "a hold ends once: {self:?}");
        assert_eq!(self.pending, ended().count() - first_try, "a pending release ends once: {self:?}");
    }
}

/// A request and, once the store has seen it, its answer.
#[derive(Debug)]
pub(super) struct Letter {
    client: usize,
    content: Content,
    deadline: Moment,
    pub(super) way: Way,
}

#[derive(Debug)]
enum Content {
    Action(ActionId, Request),
    Renewal(Batch),
}

/// How far a letter has come.
#[derive(Debug)]
pub(super) enum Way {
    /// To the store.
    There,
    /// Back to the client, which has not received it yet.
    Back(Told),
    /// Nowhere: it was lost, and its client will time out.
    Lost,
    /// To the store, although its client has timed out.
    Ghost,
}

#[derive(Debug)]
pub(super) enum Told {
    Action(Reply),
    Renewal(Result<Vec<Renewed>, BackendError>),
}

impl World {
    pub(super) fn new(policy: Policy, limit: Option<u32>, seed: u64) -> Self {
        let client = |number: usize| {
            let seed = seed.wrapping_add(number as u64);
            let mut secret = [0; 32];
            secret[..8].copy_from_slice(&seed.to_be_bytes());
            let kind = if limit.is_some() { NameKind::Semaphore } else { NameKind::Lock };
            let station = Station::new("a".parse().unwrap(), kind, policy, Owners::new(secret)).observed();
            let (waiters, keeper) = (BTreeMap::new(), Keeper::new(policy, seed));
            Client {
                station,
                keeper,
                waiters,
                adopting: BTreeSet::new(),
                leaving: None,
                holders: BTreeMap::new(),
                replacing: BTreeMap::new(),
                urgent: None,
                parted: BTreeSet::new(),
                keeping: BTreeMap::new(),
                reported: EventCounts::default(),
            }
        };
        let (now, store) = (Moment::from_nanos(1_000_000_000_000), Store::new(policy.store.waiting));
        Self {
            now,
            store,
            clients: (0..CLIENTS).map(client).collect(),
            net: Vec::new(),
            turns: 0,
            limit,
            admitted: BTreeMap::new(),
            written: 0,
            kept_until: Moment::ORIGIN,
            tickets: Vec::new(),
        }
    }

    pub(super) fn next_turn(&mut self) -> TurnId {
        self.turns += 1;
        TurnId(self.turns)
    }

    pub(super) fn join(&mut self, client: usize, join: Join) {
        self.clients[client].waiters.insert(join.turn, join.clone());
        self.feed(client, Input::Join(join));
    }

    pub(super) fn adopt(&mut self, client: usize, join: Join, ticket: Ticket) {
        let there = &mut self.clients[client];
        there.adopting.insert(join.turn);
        there.waiters.insert(join.turn, join.clone());
        self.feed(client, Input::Adopt { join, ticket });
    }

    pub(super) fn leave(&mut self, client: usize, leaving: Leaving) {
        let turn = leaving.turn;
        let held = self.clients[client].holders.remove(&turn);
        let can_be_kept = |hold: &Arc<Hold>| hold.lease().terms.mode != Mode::Shared;
        if let (Some(hold), Some(keep)) = (held.filter(can_be_kept), leaving.keep.map(Keep::get)) {
            // The store's clock may be as much too fast as the drift allows.
            let end = self.now + keep.saturating_sub(crate::drift(keep));
            let client = &mut self.clients[client];
            let owners = [Some(hold.lease().owner), client.replacement(hold.lease().owner)];
            client.keeping.extend(owners.into_iter().flatten().map(|owner| (owner, end)));
        }
        self.clients[client].leaving = Some(turn);
        self.feed(client, Input::Leave(leaving));
        let left = &mut self.clients[client];
        left.waiters.remove(&turn);
        assert!(!left.holders.contains_key(&turn), "who leaves is not admitted");
    }

    pub(super) fn cancel(&mut self, client: usize, turn: TurnId) {
        let now = self.now;
        let holds = |there: &Client| there.holders.get(&turn).is_some_and(|hold| hold.check(now).is_ok());
        let held = holds(&self.clients[client]);
        self.feed(client, Input::Cancel(turn));
        let there = &self.clients[client];
        assert!(!there.waiters.contains_key(&turn), "who is cancelled does not wait");
        assert_eq!(holds(there), held, "who is cancelled is not admitted, and who holds goes on");
    }

    pub(super) fn replace(&mut self, client: usize, turn: TurnId, terms: Terms) {
        if let Entry::Vacant(wish) = self.clients[client].replacing.entry(turn) {
            wish.insert(terms.mode);
            self.feed(client, Input::Replace { turn, terms });
        }
    }

    pub(super) fn feed(&mut self, client: usize, input: Input) {
        let joins = matches!(input, Input::Join(_) | Input::Adopt { .. });
        self.clients[client].reported.joined += usize::from(joins);
        let outputs = self.clients[client].station.handle_input(self.now, input);
        let events = self.clients[client].station.take_events();
        events.iter().for_each(|(_, event)| self.clients[client].reported.count(event));
        outputs.into_iter().for_each(|output| self.carry_out(client, output));
        let wake = self.clients[client].station.next_wake();
        assert!(wake.is_none_or(|wake| wake > self.now), "client {client} left something undone");
        self.check();
        self.check_claims();
        self.check_debt(client);
        self.clients[client].reported.check(&self.clients[client].station);
        let mut private = self.clients[client].station.leases.iter().filter(|held| held.usage == LeaseUse::Private);
        assert!(private.all(|held| held.turns.len() == 1), "a private lease is for one turn");
    }

    fn carry_out(&mut self, number: usize, output: Output) {
        let client = &mut self.clients[number];
        match output {
            Output::Admit { turn, hold } => {
                let join = client.waiters.remove(&turn).expect("only who waits is admitted");
                if let Patience::Until { end, .. } = join.patience {
                    assert!(self.now < end, "turn {} was admitted after its wait", turn.0);
                }
                assert!(self.now >= self.kept_until, "turn {} was admitted while the lock is kept", turn.0);
                let adopts = client.adopting.remove(&turn);
                let stays = |first: &&Join| {
                    client.leaving != Some(first.turn) && !adopts && !client.adopting.contains(&first.turn)
                };
                let mut before = client.waiters.range(..turn).map(|(_, first)| first).filter(stays);
                let passed = before.find(|first| is_passed(first, &join));
                assert!(passed.is_none(), "turn {} passed {passed:?}", turn.0);
                let Terms { mode, ttl } = hold.lease().terms;
                let fits = mode == join.terms.mode && (mode == Mode::Shared || ttl == join.terms.ttl);
                assert!(fits, "turn {} holds under other terms", turn.0);
                client.holders.insert(turn, Arc::clone(&hold));
                self.begin(turn, &hold);
            }
            Output::Replaced { turn, result } => {
                client.replacing.remove(&turn);
                let old = client.holders.get_mut(&turn).expect("only a holder's lease is replaced");
                if let Ok(hold) = result {
                    assert!(old.check(self.now).is_ok(), "turn {} had lost its hold before", turn.0);
                    *old = Arc::clone(&hold);
                    self.begin(turn, &hold);
                }
            }
            Output::Refuse { turn, .. } => _ = client.waiters.remove(&turn).expect("only who waits is refused"),
            Output::Lose { turn, .. } => {
                // A holder that leaves at the moment of its loss has no turn any more.
                let lost = client.holders.remove(&turn);
                assert!(lost.is_none_or(|hold| hold.check(self.now).is_err()), "a lost hold says so");
            }
            Output::Ended { .. } => {}
            Output::Detached(turn) => {
                let hold = client.holders.remove(&turn).expect("only a holder detaches its lease");
                self.tickets.push(Ticket::new(hold.lease(), hold.remaining(self.now)));
            }
            Output::Run(action) => {
                match &action.request {
                    Request::Release(ReleaseRequest { owner, certainty: Certainty::Unknown, .. }) => {
                        client.parted.insert(*owner);
                    }
                    Request::Release(_) => {}
                    Request::Acquire(claim) => check_order(&client.station, action.id, claim),
                }
                let (content, deadline) = (Content::Action(action.id, action.request), self.now + action.within);
                self.net.push(Letter { client: number, content, deadline, way: Way::There });
            }
            Output::StartRenewal { lease, admission } => client.keeper.start(lease, admission),
            Output::RenewNow(owner) => {
                let last = client.urgent.replace((owner, self.now)).filter(|(last, _)| *last == owner);
                let often = last.is_some_and(|(_, at)| self.now.since(at) < WANTED_FRESH_FOR);
                assert!(!often, "client {number} had its lease renewed a moment ago");
                client.keeper.renew_now(self.now, owner);
            }
            Output::StopRenewal(owner) => client.keeper.stop(owner),
            Output::EndSession => panic!("the leases here end by themselves"),
        }
    }

    /// A turn begins, or continues under another lease.
    fn begin(&mut self, turn: TurnId, hold: &Hold) {
        assert!(hold.check(self.now).is_ok(), "turn {} has its hold too late", turn.0);
        let mode = hold.lease().terms.mode;
        for (index, slot) in slots(hold.lease()).into_iter().enumerate() {
            let last = self.admitted.entry(slot).or_default();
            let token = hold.token().get() + index as u64;
            let floor = if mode == Mode::Shared { self.written } else { *last };
            assert!(token > floor, "token {token} of slot {slot} was admitted after {floor}");
            *last = token.max(*last);
        }
        if mode == Mode::Exclusive {
            self.written = hold.token().get();
        }
    }

    /// What holds at every moment, over all clients: no more hold than fit, no slot is held twice, no writer holds beside a
    /// reader, and none of them relies on more than the store keeps for it.
    pub(super) fn check(&self) {
        let holds =
            self.clients.iter().flat_map(|client| client.holders.iter().map(move |(turn, hold)| (client, turn, hold)));
        let live: Vec<_> = holds.filter(|(_, _, hold)| hold.check(self.now).is_ok()).collect();
        let (readers, others): (Vec<_>, Vec<_>) =
            live.iter().partition(|(client, turn, hold)| client.reads(**turn, hold));
        let mut taken = BTreeSet::new();
        for slot in others.iter().flat_map(|(client, _, hold)| client.slots(hold.lease())) {
            assert!(taken.insert(slot), "slot {slot} is held twice: {live:?}");
        }
        assert!(readers.is_empty() || others.is_empty(), "a writer holds beside a reader: {live:?}");
        for (client, _, hold) in live {
            let limit = match hold.lease().terms.mode {
                Mode::Exclusive | Mode::Shared => 1,
                Mode::Permits { limit, .. } => limit.get(),
            };
            assert!(taken.iter().all(|slot| *slot < limit), "more hold than fit: {taken:?}");
            let owner = hold.lease().owner;
            // The store may have replaced the lease, and the client does not know yet.
            let owners = [Some(owner), client.replacement(owner)];
            assert!(
                owners.into_iter().flatten().any(|owner| self.store.keeps(owner, hold.valid_until())),
                "{hold:?} relies on more than {:?}",
                self.store
            );
        }
    }

    /// A claim that may still arrive is remembered, or its release said so.
    fn check_claims(&self) {
        for letter in self.net.iter().filter(|letter| matches!(letter.way, Way::There | Way::Ghost)) {
            let Content::Action(_, Request::Acquire(claim)) = &letter.content else { continue };
            let client = &self.clients[letter.client];
            let station = &client.station;
            let asks = station.attempts.iter().any(|attempt| attempt.is_for_waiter() && attempt.owner == claim.owner);
            let holds = station.leases.iter().any(|held| held.lease.owner == claim.owner);
            let replaces = claim.replaces.is_some_and(|old| client.replacement(old) == Some(claim.owner));
            // Nobody clears up after one who detached its lease: a claim that is later than that lasts for a ttl at most.
            let detached = self.tickets.iter().any(|ticket| ticket.owner == claim.owner);
            let known = asks || holds || replaces || detached;
            assert!(known || client.parted.contains(&claim.owner), "a late claim would not be cleared: {letter:?}");
        }
    }

    /// The unanswered releases of a station are bounded.
    fn check_debt(&self, number: usize) {
        let station = &self.clients[number].station;
        let owed = |usage| station.releases.0.iter().filter(move |pending| pending.usage == usage);
        assert!(owed(LeaseUse::PassedOn).count() <= OWED_MAX, "client {number} owes too much: {station:?}");
        // Each private lease that ends adds one, and each of several claims may.
        let claims = owed(LeaseUse::Private).filter(|pending| pending.of == Of::Claim).count();
        let asked = station.known_attempts(LeaseUse::Private);
        assert!(claims + asked < OWED_MAX + ATTEMPTS_MAX, "client {number} owes too much: {station:?}");
    }

    /// The letter reaches the store.
    pub(super) fn carry(&mut self, index: usize) {
        let letter = &mut self.net[index];
        let told = match &letter.content {
            Content::Action(_, Request::Acquire(claim)) => {
                Told::Action(Reply::Acquire(self.store.acquire(self.now, letter.client, claim)))
            }
            Content::Action(_, Request::Release(request)) => {
                let released = self.store.release(self.now, request);
                if let (Released::Released, Some(_)) = (released, request.keep) {
                    self.kept_until = self.kept_until.max(self.clients[letter.client].keeping[&request.owner]);
                }
                Told::Action(Reply::Release(Ok(released)))
            }
            Content::Renewal(batch) => Told::Renewal(Ok(self.store.renew(self.now, &batch.leases))),
        };
        match letter.way {
            Way::There => letter.way = Way::Back(told),
            Way::Ghost => _ = self.net.remove(index),
            Way::Back(_) | Way::Lost => unreachable!("only what is in flight is carried"),
        }
    }

    /// The client has its answer.
    pub(super) fn answer(&mut self, index: usize) {
        let letter = self.net.remove(index);
        let Way::Back(told) = letter.way else { unreachable!("only what was answered comes back") };
        self.report(letter.client, letter.content, told);
    }

    /// The letter fails at once: the store cannot be reached.
    pub(super) fn fail(&mut self, index: usize) {
        let letter = self.net.remove(index);
        let told = failure(&letter.content, ErrorKind::Unreachable);
        self.report(letter.client, letter.content, told);
    }

    fn report(&mut self, client: usize, content: Content, told: Told) {
        match (content, told) {
            (Content::Action(id, _), Told::Action(reply)) => self.feed(client, Input::Reply(id, reply)),
            (Content::Renewal(batch), Told::Renewal(result)) => {
                for renewal in self.clients[client].keeper.answered(self.now, batch, result) {
                    let (owner, asked_at, answer) = (renewal.owner, renewal.asked_at, renewal.answer);
                    self.feed(client, Input::Renewal { owner, asked_at, answer });
                }
            }
            (Content::Action(..), Told::Renewal(_)) | (Content::Renewal(_), Told::Action(_)) => unreachable!(),
        }
    }

    pub(super) fn event(&mut self, client: usize, event: &StoreEvent) {
        // A revocation has leases renewed however soon after another renewal, and does not count against the next one.
        let urgent = self.clients[client].urgent;
        if matches!(event, StoreEvent::Revoked { .. }) {
            self.clients[client].urgent = None;
        }
        self.feed(client, Input::Event(event.clone()));
        if matches!(event, StoreEvent::Revoked { .. }) {
            self.clients[client].urgent = urgent;
        }
    }

    /// Lets time pass, and ticks every client at its deadlines except one that sleeps.
    pub(super) fn pass(&mut self, time: Duration, asleep: Option<usize>) {
        let end = self.now + time;
        while let Some(next) = self.next_due(asleep).filter(|next| *next <= end) {
            self.now = self.now.max(next);
            for client in (0..CLIENTS).filter(|client| Some(*client) != asleep) {
                self.wake(client);
            }
        }
        self.now = end;
        self.check();
    }

    /// The next deadline of a client that is awake.
    pub(super) fn next_due(&self, asleep: Option<usize>) -> Option<Moment> {
        let awake = |number: &usize| Some(*number) != asleep;
        let clients = (0..CLIENTS).filter(awake).map(|number| &self.clients[number]);
        let wakes = clients.flat_map(|client| [client.station.next_wake(), client.keeper.next_due()]).flatten();
        let waited_for = self.net.iter().filter(|letter| awake(&letter.client) && !matches!(letter.way, Way::Ghost));
        wakes.chain(waited_for.map(|letter| letter.deadline)).min()
    }

    fn wake(&mut self, number: usize) {
        if self.clients[number].station.next_wake().is_some_and(|wake| wake <= self.now) {
            self.feed(number, Input::Tick);
        }
        while let Some(batch) = self.clients[number].keeper.take_due(self.now) {
            let deadline = self.now + batch.within;
            self.net.push(Letter { client: number, content: Content::Renewal(batch), deadline, way: Way::There });
        }
        let overdue = |letter: &Letter, now| {
            letter.client == number && letter.deadline <= now && !matches!(letter.way, Way::Ghost)
        };
        while let Some(index) = self.net.iter().position(|letter| overdue(letter, self.now)) {
            let Letter { client, content, deadline, way } = self.net.remove(index);
            let told = failure(&content, ErrorKind::Timeout);
            if matches!(way, Way::There) {
                self.net.push(Letter { client, content: content.copy(), deadline, way: Way::Ghost });
            }
            self.report(client, content, told);
        }
    }

    /// From now on, everything works and holders leave at once. Continues until nothing is left to do.
    pub(super) fn heal(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let lost = |letter: &Letter| matches!(letter.way, Way::Lost);
            while let Some(index) = self.net.iter().position(|letter| !lost(letter)) {
                if matches!(self.net[index].way, Way::Back(_)) { self.answer(index) } else { self.carry(index) }
            }
            for (client, event) in std::mem::take(&mut self.store.news) {
                self.event(client, &event);
            }
            for client in 0..CLIENTS {
                for turn in self.clients[client].holders.keys().copied().collect::<Vec<_>>() {
                    self.leave(client, Leaving::now(turn));
                }
            }
            let quiet = self.net.is_empty() && self.store.news.is_empty();
            if quiet && self.clients.iter().all(|client| client.station.is_idle()) {
                return;
            }
            if quiet || self.net.iter().all(lost) {
                let next = self.next_due(None).expect("who waits is woken in the end");
                self.pass(next.since(self.now), None);
            }
        }
        panic!("the world does not come to rest: {self:?}");
    }

    pub(super) fn is_at_rest(&self) -> bool {
        let at_rest = |client: &Client| client.station.is_idle() && client.keeper.is_empty();
        self.clients.iter().all(|client| at_rest(client) && client.waiters.is_empty() && client.holders.is_empty())
    }
}

impl Client {
    /// Whether a holder writes nothing, because it reads or wants to.
    fn reads(&self, turn: TurnId, hold: &Hold) -> bool {
        [Some(&hold.lease().terms.mode), self.replacing.get(&turn)].contains(&Some(&Mode::Shared))
    }

    /// The owner that may have replaced this one.
    fn replacement(&self, old: Owner) -> Option<Owner> {
        self.replacing(old).map(|new| new.owner)
    }

    fn replacing(&self, old: Owner) -> Option<&Attempt> {
        self.station.replacement_of(old)
    }

    /// The slots that a holder may use: while it gives some of them back, only the others.
    fn slots(&self, lease: &Lease) -> Vec<u32> {
        let mut slots = slots(lease);
        if let Some(new) = self.replacing(lease.owner) {
            slots.truncate(usize::try_from(new.terms.mode.count()).unwrap().max(1));
        }
        slots
    }
}

/// At a store without a queue, no claim is sent before the release of an unanswered claim is answered.
fn check_order(station: &Station, id: ActionId, claim: &Claim) {
    let came_first = |pending: &&PendingRelease| match pending.progress {
        Progress::InFlight(release, _) => release < id,
        Progress::Due(_) => true,
    };
    let owed = station.releases.0.iter().filter(came_first);
    let unanswered: Vec<_> = owed.filter(|pending| pending.request.certainty == Certainty::Unknown).collect();
    // A grant that came too late is asked for again.
    let known = station.attempts.iter().find(|attempt| attempt.owner == claim.owner && attempt.place == Place::Queued);
    let is_first = station.policy.store.waiting == Waiting::Poll && claim.replaces.is_none() && known.is_none();
    assert!(!is_first || unanswered.is_empty(), "{claim:?} goes out before the answers to {unanswered:?}");
}

/// The slots of a lease. That of a lock takes the only one.
fn slots(lease: &Lease) -> Vec<u32> {
    match lease.terms.mode {
        Mode::Exclusive | Mode::Shared => vec![0],
        Mode::Permits { .. } => lease.slots.get().to_vec(),
    }
}

/// Whether the first is passed if the second is admitted, and must not be. Waiters at a semaphore that want different things
/// have places of their own, and the store decides which comes first.
fn is_passed(first: &Join, second: &Join) -> bool {
    let same = first.fairness == second.fairness;
    match second.terms.mode {
        Mode::Exclusive => true,
        Mode::Shared => second.fairness == Fairness::Fair || same && first.terms.mode == Mode::Shared,
        Mode::Permits { .. } => same && first.terms == second.terms,
    }
}

impl Content {
    fn copy(&self) -> Self {
        match self {
            Self::Action(id, request) => Self::Action(*id, request.clone()),
            Self::Renewal(batch) => Self::Renewal(batch.clone()),
        }
    }
}

fn failure(content: &Content, kind: ErrorKind) -> Told {
    let error = |operation| BackendError::new("model", operation, kind, Effect::None, "did not work");
    match content {
        Content::Action(_, Request::Acquire(_)) => Told::Action(Reply::Acquire(Err(error(Operation::Acquire)))),
        Content::Action(_, Request::Release(_)) => Told::Action(Reply::Release(Err(error(Operation::Release)))),
        Content::Renewal(_) => Told::Renewal(Err(error(Operation::Renew))),
    }
}
