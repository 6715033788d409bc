//! A station under test: the test chooses the time of each input, and reads the outputs as text.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::super::{ActionId, Input, Join, Leaving, Output, Owners, Reply, Request, Station, TurnId};
use super::words;
use crate::{
    Ability, Answer, BackendError, Capabilities, Claim, Durability, Effect, ErrorKind, FencingToken, Hold, Holder,
    Keep, Lease, Mode, ModeKind, Moment, NameKind, Note, Operation, Owner, Policy, Released, Renewed, RequestOrder,
    Slots, StoreEvent, Terms, Ticket, TokenRange, Ttl, Waiting,
};

/// A store with a queue that notifies waiters, and keeps the order of requests. Readers can share its locks.
pub(super) fn told_in_order() -> Policy {
    let capabilities = Capabilities::new("test", Waiting::QueueWithPush, Durability::Process);
    let capabilities = capabilities.with_ordering(RequestOrder::InOrder);
    let capabilities = capabilities.with_modes(&[ModeKind::Exclusive, ModeKind::Shared]);
    Policy::new(capabilities.with_abilities(&[Ability::Keep, Ability::Replace, Ability::Barge]))
}

/// The same for a store that grants all modes.
pub(super) fn all_modes() -> Policy {
    let mut policy = told_in_order();
    policy.store.modes = &[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits];
    policy
}

pub(super) fn ttl(text: &str) -> Ttl {
    text.parse().unwrap()
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The secret from which the owners of all stations here are drawn.
pub(super) const SECRET: [u8; 32] = [1; 32];

/// The owner of a lease that this client never asked for.
pub(super) fn stranger() -> Owner {
    Owner::from_random([99; 16])
}

/// The owner of a lease that was detached elsewhere.
pub(super) fn detached() -> Owner {
    Owner::from_random([77; 16])
}

/// The ticket of that lease, which had this token.
pub(super) fn ticket(mode: Mode, token: u64) -> Ticket {
    let (name, owner, terms) = ("a".parse().unwrap(), detached(), Terms { mode, ttl: Ttl::DEFAULT });
    let lease = Lease { name, owner, tokens: tokens(token, token), terms, slots: Slots::NONE };
    Ticket::new(&lease, Duration::from_secs(29))
}

pub(super) fn join(turn: u8) -> Join {
    Join::new(TurnId(u64::from(turn)), Note::from_wire("1@test"))
}

pub(super) fn reader(turn: u8) -> Join {
    Join { terms: Terms { mode: Mode::Shared, ttl: Ttl::DEFAULT }, ..join(turn) }
}

pub(super) fn tokens(low: u64, high: u64) -> TokenRange {
    TokenRange::new(FencingToken::new(low).unwrap(), FencingToken::new(high).unwrap()).unwrap()
}

pub(super) fn somebody(low: u64, high: u64) -> Holder {
    Holder::Leasehold { tokens: tokens(low, high), note: Note::from_wire("2@elsewhere") }
}

pub(super) fn error(kind: ErrorKind, effect: Effect) -> BackendError {
    BackendError::new("test", Operation::Acquire, kind, effect, "out of order")
}

/// A wish to have the lock kept for this time.
pub(super) fn keep(time: Duration) -> Option<Keep> {
    told_in_order().store.keep(time).ok()
}

/// No outputs.
pub(super) fn none() -> [&'static str; 0] {
    []
}

pub(super) fn rig() -> Rig {
    Rig::new(told_in_order())
}

/// A station that holds under tokens `low..=high`, with this many more local waiters behind the holder.
pub(super) fn holding(policy: Policy, low: u64, high: u64, waiters: u8) -> Rig {
    let mut rig = Rig::new(policy);
    for turn in 1..=waiters + 1 {
        rig.join(turn);
    }
    rig.grant(low, high);
    rig
}

pub(super) struct Rig {
    pub(super) station: Station,
    pub(super) now: Moment,
    /// What all who join want, if it is not an exclusive lease.
    mode: Mode,
    /// The claims that were sent. The last one is answered next.
    claims: Vec<(ActionId, Claim)>,
    /// The latest release that was sent.
    release: Option<ActionId>,
}

impl Rig {
    pub(super) fn new(policy: Policy) -> Self {
        Self::of_kind(NameKind::Lock, policy)
    }

    fn of_kind(kind: NameKind, policy: Policy) -> Self {
        let station = Station::new("a".parse().unwrap(), kind, policy, Owners::new(SECRET));
        Self {
            station,
            now: Moment::from_nanos(1_000_000_000_000),
            mode: Mode::Exclusive,
            claims: Vec::new(),
            release: None,
        }
    }

    /// The same, where all who join want a lease of this mode.
    pub(super) fn with_mode(policy: Policy, mode: Mode) -> Self {
        Self { mode, ..Self::of_kind(mode.name_kind(), policy) }
    }

    pub(super) fn is_semaphore(&self) -> bool {
        self.station.kind == NameKind::Semaphore
    }

    /// The claim with this number is answered next.
    pub(super) fn about(&mut self, claim: u64) -> &mut Self {
        let index = self.claims.iter().position(|(id, _)| id.0 == claim).expect("that claim went out");
        let claim = self.claims.remove(index);
        self.claims.push(claim);
        self
    }

    /// Feeds one input, and returns the outputs.
    pub(super) fn feed(&mut self, mut input: Input) -> Vec<String> {
        if let Input::Join(Join { terms, .. })
        | Input::Adopt { join: Join { terms, .. }, .. }
        | Input::Replace { terms, .. } = &mut input
            && terms.mode == Mode::Exclusive
        {
            terms.mode = self.mode;
        }
        let outputs = self.station.handle_input(self.now, input);
        for output in &outputs {
            if let Output::Run(action) = output {
                match &action.request {
                    Request::Acquire(claim) => self.claims.push((action.id, claim.clone())),
                    Request::Release(_) => self.release = Some(action.id),
                }
            }
        }
        outputs.iter().map(|output| words::output(self.now, output)).collect()
    }

    /// Lets time pass without telling the station.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Lets time pass until the station's next deadline, and ticks it.
    pub(super) fn wake(&mut self) -> Vec<String> {
        self.now = self.station.next_wake().expect("the station has something to wait for").max(self.now);
        self.feed(Input::Tick)
    }

    pub(super) fn join(&mut self, turn: u8) -> Vec<String> {
        self.feed(Input::Join(join(turn)))
    }

    pub(super) fn join_for_one_answer(&mut self, turn: u8) -> Vec<String> {
        self.feed(Input::Join(Join { max_requests: NonZeroU32::new(1), ..join(turn) }))
    }

    /// Wants to go on with the lease that was detached, which had this token.
    pub(super) fn adopt(&mut self, join: Join, token: u64) -> Vec<String> {
        let mode = if join.terms.mode == Mode::Exclusive { self.mode } else { join.terms.mode };
        self.feed(Input::Adopt { ticket: ticket(mode, token), join })
    }

    pub(super) fn detach(&mut self, turn: u8) -> Vec<String> {
        self.feed(Input::Detach(TurnId(u64::from(turn))))
    }

    pub(super) fn leave(&mut self, turn: u8) -> Vec<String> {
        self.feed(Input::Leave(Leaving::now(TurnId(u64::from(turn)))))
    }

    pub(super) fn cancel(&mut self, turn: u8) -> Vec<String> {
        self.feed(Input::Cancel(TurnId(u64::from(turn))))
    }

    /// Leaves, and wants the lock kept for a minute.
    pub(super) fn leave_and_keep(&mut self, turn: u8) -> Vec<String> {
        let (turn, keep) = (TurnId(u64::from(turn)), keep(Duration::from_secs(60)));
        self.feed(Input::Leave(Leaving { turn, keep }))
    }

    pub(super) fn read(&mut self, turn: u8) -> Vec<String> {
        self.feed(Input::Join(reader(turn)))
    }

    /// Wants to continue as a reader.
    pub(super) fn downgrade(&mut self, turn: u8) -> Vec<String> {
        let Join { turn, terms, .. } = reader(turn);
        self.feed(Input::Replace { turn, terms })
    }

    /// Wants to continue as a writer.
    pub(super) fn upgrade(&mut self, turn: u8) -> Vec<String> {
        let Join { turn, terms, .. } = join(turn);
        self.feed(Input::Replace { turn, terms })
    }

    /// The answer to a renewal that was handed out now.
    pub(super) fn renewed(&mut self, wanted: bool) -> Vec<String> {
        self.renewal(self.now, Ok(Renewed::Renewed { valid_for: Duration::from_secs(30), wanted }))
    }

    /// The store reports that somebody began to wait.
    pub(super) fn want(&mut self) -> Vec<String> {
        self.feed(Input::Event(StoreEvent::Wanted { name: "a".parse().unwrap() }))
    }

    /// Wants to continue with this ttl.
    pub(super) fn replace(&mut self, turn: u8, length: &str) -> Vec<String> {
        let (turn, terms) = (TurnId(u64::from(turn)), Terms::exclusive(ttl(length)));
        self.feed(Input::Replace { turn, terms })
    }

    /// Answers the latest claim.
    pub(super) fn answer(&mut self, result: Result<Answer, BackendError>) -> Vec<String> {
        let id = self.claim_id();
        self.feed(Input::Reply(id, Reply::Acquire(result)))
    }

    /// Grants these tokens to the owner of the latest claim, for its whole ttl.
    pub(super) fn grant(&mut self, low: u64, high: u64) -> Vec<String> {
        let lease = self.lease(low, high);
        let valid_for = lease.terms.ttl.get();
        self.answer(Ok(Answer::Granted { lease, valid_for, wanted: false }))
    }

    pub(super) fn queue(&mut self) -> Vec<String> {
        let (position, valid_for) = (1, Duration::from_secs(10));
        self.answer(Ok(Answer::Queued { position, remaining: None, valid_for, holder: somebody(8, 8), drawn: None }))
    }

    /// The same at a store that has drawn tokens up to this one.
    pub(super) fn queue_after(&mut self, drawn: u64) -> Vec<String> {
        let (position, valid_for, drawn) = (1, Duration::from_secs(10), FencingToken::new(drawn).ok());
        self.answer(Ok(Answer::Queued { position, remaining: None, valid_for, holder: somebody(8, 8), drawn }))
    }

    /// Answers the latest claim with the first place, behind a lease that ends after so long.
    pub(super) fn queue_for(&mut self, remaining: Duration) -> Vec<String> {
        let (remaining, valid_for) = (Some(remaining), Duration::from_secs(10));
        self.answer(Ok(Answer::Queued { position: 1, remaining, valid_for, holder: somebody(8, 8), drawn: None }))
    }

    pub(super) fn be_busy(&mut self) -> Vec<String> {
        self.answer(Ok(Answer::Busy { remaining: None, holder: somebody(8, 8), drawn: None }))
    }

    pub(super) fn fail(&mut self, kind: ErrorKind, effect: Effect) -> Vec<String> {
        self.answer(Err(error(kind, effect)))
    }

    /// Reports that the lock was handed to the owner of the latest claim, for as long as a place lasts.
    pub(super) fn hand_over(&mut self, low: u64, high: u64) -> Vec<String> {
        let lease = self.lease(low, high);
        self.feed(Input::Event(StoreEvent::Granted { lease, valid_for: Duration::from_secs(10), wanted: false }))
    }

    /// Answers the latest release.
    pub(super) fn release(&mut self, result: Result<Released, BackendError>) -> Vec<String> {
        let id = self.release.expect("a release went out");
        self.feed(Input::Reply(id, Reply::Release(result)))
    }

    /// Answers a renewal of the latest claim's lease, asked at `asked_at`.
    pub(super) fn renewal(&mut self, asked_at: Moment, answer: Result<Renewed, BackendError>) -> Vec<String> {
        let owner = self.station.leases.first().map_or_else(|| self.claimant(), |held| held.lease.owner);
        self.feed(Input::Renewal { owner, asked_at, answer })
    }

    /// The owner of the present lease.
    pub(super) fn owner(&self) -> Owner {
        self.station.leases.first().expect("somebody holds").lease.owner
    }

    /// The owner of the latest claim.
    pub(super) fn claimant(&self) -> Owner {
        self.claim().1.owner
    }

    /// Grants permits to the owner of the latest claim: these slots, and as many tokens from this one on.
    pub(super) fn grant_slots(&mut self, low: u64, slots: impl IntoIterator<Item = u32>) -> Vec<String> {
        let slots = Slots::new(slots);
        let high = low + u64::try_from(slots.get().len()).unwrap() - 1;
        let lease = Lease { slots, tokens: tokens(low, high), ..self.lease(low, high) };
        let valid_for = lease.terms.ttl.get();
        self.answer(Ok(Answer::Granted { lease, valid_for, wanted: false }))
    }

    /// What a grant to the latest claim looks like.
    pub(super) fn lease(&self, low: u64, high: u64) -> Lease {
        let claim = &self.claim().1;
        let high = match claim.terms.mode {
            Mode::Exclusive | Mode::Shared => high,
            Mode::Permits { count, .. } => low + u64::from(count.get()) - 1,
        };
        let tokens = tokens(low, high);
        Lease { slots: Slots::new(0..claim.terms.mode.count()), ..claim.lease(tokens) }
    }

    fn claim(&self) -> &(ActionId, Claim) {
        self.claims.last().expect("a claim went out")
    }

    /// What the present guard knows.
    pub(super) fn hold(&self) -> Arc<Hold> {
        let held = self.station.leases.first().expect("somebody holds");
        Arc::clone(&held.turns.first().expect("a turn").1.hold)
    }

    pub(super) fn claim_id(&self) -> ActionId {
        self.claim().0
    }

    pub(super) fn state(&self) -> String {
        words::state(self.now, &self.station)
    }
}
