//! The reference store as a server: what its clients say to it, and where they listen.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;

use lock_core::latch::{Act, LatchState, Request, Seen, Watching};
use lock_core::{
    Ability, Answer, BackendError, Capabilities, Certainty, Claim, ErrorKind, Evidence, Fairness, FencingToken, Holder,
    Lease, LockName, ModeKind, Moment, NameKind, Note, Owner, Queueing, ReleaseRequest, Released, StoreEvent, Terms,
    TokenRange, Ttl, Width,
};
use lock_memory::store::{ClientId, Hold, Notice, Store};

use super::twin::Twin;
use crate::client::Usage;
use crate::dice::Dice;
use crate::network::ConnId;
use crate::one::{Ask, Inbox, Listeners, Mistake, Model, Order, Outcome, Refused, Say, Seat, Stored, micros, operator};

/// The client of those who are not told anything.
const SILENT: ClientId = ClientId::new(0);

/// The store, and where its clients listen.
#[derive(Debug, Default)]
pub(super) struct Server {
    store: Store,
    listeners: Listeners,
    inboxes: BTreeMap<ClientId, Inbox>,
    outsider: Option<TokenRange>,
    mistake: Option<Mistake>,
    twin: Twin,
}

impl Server {
    /// Runs a request of a client.
    fn run(&mut self, now: Moment, ask: &Ask) -> Say {
        match ask {
            Ask::Hello(_) | Ask::Topology => Say::Hello,
            Ask::Grant(_) | Ask::KeepAlive(_) | Ask::Look(_) | Ask::Txn(..) => Say::NoLease,
            Ask::Join(..) | Ask::Beat | Ask::CatchUp | Ask::EndSession => Say::SessionOver,
            Ask::Acquire(claim, seat) => {
                let client = self.client(*seat);
                let answer = self.twin.acquire(self.mistake, now, &mut self.store, client, claim);
                Say::Acquire(answer.map(|answer| self.as_said(answer)).map_err(refused))
            }
            Ask::Renew(leases) => Say::Renew(self.store.renew(now, leases)),
            Ask::Release(request) => {
                Say::Release(self.twin.release(self.mistake, now, &mut self.store, request).map_err(refused))
            }
            Ask::Fence(lease) => Say::Fence(self.store.fence(now, lease)),
            Ask::Revoke(name, token) => Say::Revoke(self.store.revoke(now, name, *token, &operator())),
            Ask::Latch(request, _, inbox) => Say::Latch(self.ask_latch(now, request, *inbox)),
            Ask::ForeignSet(name, value, life) => {
                self.outsider = self.foreign_set(now, name, *value, Duration::from_millis(*life));
                Say::Foreign(self.outsider.is_some())
            }
            Ask::ForeignDelete(name, value) => {
                let terms = Terms::exclusive(Ttl::DEFAULT);
                let (name, owner, certainty) = (name.clone(), outsider(*value), Certainty::Answered);
                let request = ReleaseRequest { name, owner, terms, certainty, keep: None, evidence: Evidence::Nothing };
                Say::Foreign(self.store.release(now, &request) == Ok(Released::Released))
            }
        }
    }

    /// Only who listens is told.
    fn ask_latch(&mut self, now: Moment, request: &Request, inbox: Option<Inbox>) -> Seen {
        let heard = inbox.filter(|inbox| self.listeners.is_heard(*inbox));
        let client = heard.map_or(SILENT, |inbox| self.client(Seat::Told(inbox)));
        let present = self.latch(now, &request.name);
        let mut request = self.twin.latch(self.mistake, present, request);
        if let (Act::Look { watching }, None) = (&mut request.act, heard) {
            *watching = Watching::Unwanted;
        }
        self.store.latch(now, client, &request)
    }

    fn client(&mut self, seat: Seat) -> ClientId {
        let Seat::Told(inbox) = seat else { return SILENT };
        let client = ClientId::new(inbox.0);
        self.inboxes.insert(client, inbox);
        client
    }

    fn as_said(&mut self, mut answer: Answer) -> Answer {
        match &mut answer {
            Answer::Granted { lease, .. } => *lease = self.twin.granted(self.mistake, lease.clone()),
            Answer::Queued { holder, .. } | Answer::Busy { holder, .. } => {
                if matches!(holder, Holder::Leasehold { tokens, .. } if Some(*tokens) == self.outsider) {
                    *holder = Holder::Foreign;
                }
            }
        }
        answer
    }

    /// A client of the plain layout is one that nobody knows as ours.
    fn foreign_set(&mut self, now: Moment, name: &LockName, value: u64, life: Duration) -> Option<TokenRange> {
        let (name, owner, terms) = (name.clone(), outsider(value), Terms::exclusive(Ttl::new(life).ok()?));
        let (width, floor, note) = (Width::ONE, None, Note::from_wire(""));
        let (queueing, fairness, kind, replaces) = (Queueing::Unwanted, Fairness::Fair, NameKind::Lock, None);
        let claim = Claim { name, owner, terms, width, floor, note, queueing, fairness, kind, replaces };
        match self.store.acquire(now, SILENT, &claim) {
            Ok(Answer::Granted { lease, .. }) => Some(lease.tokens),
            Ok(_) | Err(_) => None,
        }
    }

    /// What others are told because of a request: of hand-overs, and hints.
    fn news(&mut self) -> (Vec<Lease>, Vec<(Inbox, StoreEvent)>) {
        let (mut granted, mut published) = (Vec::new(), Vec::new());
        for Notice { client, mut event } in self.store.take_notices() {
            if let StoreEvent::Granted { lease, .. } = &mut event {
                *lease = self.twin.granted(self.mistake, lease.clone());
                granted.push(lease.clone());
            }
            published.push((client, event));
        }
        let inbox = |(client, event)| Some((*self.inboxes.get(&client)?, event));
        (granted, published.into_iter().filter_map(inbox).collect())
    }

    /// What is drawn from now on is above all that was drawn, as with a counter that is compared with the clock.
    fn raise_tokens(&mut self, now: Moment) {
        if self.mistake != Some(Mistake::TokensFall)
            && let Ok(token) = FencingToken::new(micros(now))
        {
            self.store.raise_tokens(token);
        }
    }
}

impl Model for Server {
    type Data = Store;

    /// A replacement may be for ten times as long.
    const TTLS: &'static [Duration] =
        &[Duration::from_millis(600), Duration::from_secs(3), Duration::from_secs(3), Duration::from_secs(12)];
    const REPEATS: &'static [u32] = &[0, 50];
    const ORDER: Order = Order::OfArrival;

    fn new(_: &mut Dice, mistake: Option<Mistake>) -> Self {
        Self { mistake, ..Self::default() }
    }

    fn can(capabilities: Capabilities) -> Capabilities {
        capabilities.with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits]).with_abilities(&[
            Ability::Keep,
            Ability::Replace,
            Ability::Barge,
        ])
    }

    fn usage(dice: &mut Dice) -> Usage {
        Usage::any(dice)
    }

    fn ask(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Outcome {
        if let Ask::Hello(Some(inbox)) = ask {
            self.listeners.add(*inbox, conn);
        }
        self.twin.before(self.mistake, now, &mut self.store, ask);
        let asked = if let Ask::Acquire(claim, _) = ask { Some(&claim.name) } else { None };
        let holds = asked.into_iter().flat_map(|name| self.store.holds(now, name));
        let held: Vec<_> = holds.map(|hold| hold.tokens).collect();
        let say = self.run(now, ask);
        let (mut granted, published) = self.news();
        if let Say::Acquire(Ok(Answer::Granted { lease, .. })) = &say
            && !held.contains(&lease.tokens)
        {
            granted.push(lease.clone());
        }
        Outcome { say, published, granted }
    }

    fn heard_on(&self, inbox: Inbox) -> BTreeSet<ConnId> {
        self.listeners.on(inbox)
    }

    fn closed(&mut self, conn: ConnId) {
        self.listeners.closed(conn);
    }

    fn data(&self) -> &Store {
        &self.store
    }

    fn flush(&mut self, now: Moment) {
        mem::take(&mut self.store);
        self.twin = Twin::default();
        self.raise_tokens(now);
    }

    fn start_again(&mut self, now: Moment, data: Store) {
        self.store = data;
        self.twin = Twin::default();
        self.listeners.clear();
        self.raise_tokens(now);
    }

    fn latches() -> Vec<LockName> {
        "phase".parse().into_iter().collect()
    }

    fn latch(&mut self, now: Moment, name: &LockName) -> Option<LatchState> {
        let act = Act::Look { watching: Watching::Unwanted };
        self.store.latch(now, SILENT, &Request { name: name.clone(), act }).state
    }

    fn owners(&self) -> BTreeSet<Owner> {
        self.store.owners().collect()
    }

    fn holds(&self, now: Moment, name: &LockName) -> Vec<Stored> {
        let holds = self.store.holds(now, name).filter(|hold| Some(hold.tokens) != self.outsider);
        let stored = |Hold { owner, tokens, slots, until, .. }: &Hold| Stored {
            owner: *owner,
            tokens: *tokens,
            slots: slots.clone(),
            until: *until,
        };
        holds.map(stored).collect()
    }

    fn left_over(&mut self, now: Moment, names: &[LockName]) -> Option<String> {
        let left = |name: &LockName| self.store.holds(now, name).next().map(|hold| format!("{name}: {hold:?}"));
        names.iter().find_map(left)
    }
}

fn outsider(value: u64) -> Owner {
    Owner::from_random((u128::from(value) << 64 | 1).to_be_bytes())
}

fn refused(error: BackendError) -> Refused {
    if error.kind() == ErrorKind::Protocol { Refused::GivenUp } else { Refused::Other(error) }
}
