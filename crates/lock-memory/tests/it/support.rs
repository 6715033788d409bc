//! Claims, leases and moments for the tests.

use std::time::Duration;

use lock_core::{
    Answer, Certainty, Claim, Evidence, Fairness, Lease, LockName, Moment, NameKind, Note, Owner, Queueing,
    ReleaseRequest, StoreEvent, Terms, Ttl, Width,
};
use lock_memory::store::{ClientId, Notice, Store};

pub(crate) const ONE: ClientId = ClientId::new(1);
pub(crate) const TWO: ClientId = ClientId::new(2);
/// Longer than the longest lease of a place.
pub(crate) const TTL: Duration = Duration::from_secs(30);
pub(crate) const PLACE: Duration = Duration::from_secs(10);
pub(crate) const TICK: Duration = Duration::from_millis(1);

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) fn at(count: u64) -> Moment {
    Moment::ORIGIN + seconds(count)
}

pub(crate) fn name(text: &str) -> LockName {
    text.parse().unwrap()
}

pub(crate) fn owner(byte: u8) -> Owner {
    Owner::from_random([byte; 16])
}

/// A claim of this owner that would like to queue.
pub(crate) fn claim(byte: u8) -> Claim {
    Claim {
        name: name("invoice:42"),
        owner: owner(byte),
        terms: Terms::exclusive(Ttl::new(TTL).unwrap()),
        width: Width::ONE,
        floor: None,
        note: Note::new("here", u32::from(byte), "testing").unwrap(),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

/// A claim of this owner that would not.
pub(crate) fn try_claim(byte: u8) -> Claim {
    Claim { queueing: Queueing::Unwanted, ..claim(byte) }
}

pub(crate) fn release_of(byte: u8) -> ReleaseRequest {
    let Claim { name, owner, terms, .. } = claim(byte);
    ReleaseRequest { name, owner, terms, certainty: Certainty::Answered, keep: None, evidence: Evidence::Nothing }
}

pub(crate) fn unsure_release(byte: u8) -> ReleaseRequest {
    ReleaseRequest { certainty: Certainty::Unknown, ..release_of(byte) }
}

pub(crate) fn granted(answer: Answer) -> (Lease, Duration) {
    match answer {
        Answer::Granted { lease, valid_for, .. } => (lease, valid_for),
        Answer::Queued { .. } | Answer::Busy { .. } => panic!("not granted: {answer:?}"),
    }
}

pub(crate) fn position(answer: Answer) -> u32 {
    match answer {
        Answer::Queued { position, .. } => position,
        Answer::Granted { .. } | Answer::Busy { .. } => panic!("not queued: {answer:?}"),
    }
}

/// The first and last token of a lease.
pub(crate) fn tokens(lease: &Lease) -> (u64, u64) {
    (lease.tokens.low().get(), lease.tokens.high().get())
}

/// Who ends the leases of others.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}

/// A lock that went to a waiter.
#[derive(Debug, PartialEq)]
pub(crate) struct HandOver {
    pub(crate) client: ClientId,
    pub(crate) lease: Lease,
    pub(crate) valid_for: Duration,
    pub(crate) wanted: bool,
}

/// The hand-overs since the last look at the notices.
pub(crate) fn hand_overs(store: &mut Store) -> Vec<HandOver> {
    let hand_over = |Notice { client, event }| {
        let StoreEvent::Granted { lease, valid_for, wanted } = event else { return None };
        Some(HandOver { client, lease, valid_for, wanted })
    };
    store.take_notices().into_iter().filter_map(hand_over).collect()
}

/// The other notices since the last look at them.
pub(crate) fn hints(store: &mut Store) -> Vec<Notice> {
    store.take_notices().into_iter().filter(|notice| !matches!(notice.event, StoreEvent::Granted { .. })).collect()
}
