//! The cases that a trace has covered.

use lock_core::node::{Ask, NodeState, Record, Recording, Told, View};
use lock_core::{Claim, Fenced, FencingToken, Lease, Released};

use super::pair::Answered;

/// The cases that a trace has to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Met {
    /// A hold ended by the clock.
    Ended,
    /// The wish was granted.
    Wish,
    /// The token above the counter.
    AboveCounter,
    /// The token above the floor.
    AboveFloor,
    /// A wish that counted for no more than the clock and a second.
    WishFarAhead,
    /// A floor that counted for no more than the clock and a day.
    FloorFarAhead,
    /// The owner already held.
    Again,
    /// The same, for longer than anybody had asked.
    AgainForLonger,
    Held,
    NoClaims,
    GivenUp,
    Spent,
    Acknowledged,
    /// The grant's token was raised.
    Raised,
    RenewedForLonger,
    /// The owner's own grant has a higher token.
    Higher,
    /// A later owner holds.
    SomebodyAfter,
    /// Another owner holds, which is not a later one.
    NotHeldButByAnother,
    NotHeldByAnybody,
    NoFences,
    Released,
    NothingToRelease,
    Votes,
    AbstainsNow,
    HasForgotten,
    Marked,
    NotMarked,
    Installed,
    NotInstalled,
    Moved,
    NotMoved,
    Recorded,
    RecordedBefore,
    RecordedAnew,
    RecordedByOthers,
    NotRecorded,
}

impl Met {
    /// All of them.
    pub(super) const ALL: [Self; 36] = [
        Self::Ended,
        Self::Wish,
        Self::AboveCounter,
        Self::AboveFloor,
        Self::WishFarAhead,
        Self::FloorFarAhead,
        Self::Again,
        Self::AgainForLonger,
        Self::Held,
        Self::NoClaims,
        Self::GivenUp,
        Self::Spent,
        Self::Acknowledged,
        Self::Raised,
        Self::RenewedForLonger,
        Self::Higher,
        Self::SomebodyAfter,
        Self::NotHeldButByAnother,
        Self::NotHeldByAnybody,
        Self::NoFences,
        Self::Released,
        Self::NothingToRelease,
        Self::Votes,
        Self::AbstainsNow,
        Self::HasForgotten,
        Self::Marked,
        Self::NotMarked,
        Self::Installed,
        Self::NotInstalled,
        Self::Moved,
        Self::NotMoved,
        Self::Recorded,
        Self::RecordedBefore,
        Self::RecordedAnew,
        Self::RecordedByOthers,
        Self::NotRecorded,
    ];
}

/// What this answer shows.
pub(super) fn met_in(ask: &Ask, answered: &Answered) -> Vec<Met> {
    let [before, after] = [&answered.before, &answered.after].map(|store| store.view(answered.at, &answered.run));
    match (ask, &answered.told) {
        (Ask::Acquire { .. }, Ok(Told::Abstains)) => vec![Met::NoClaims],
        (Ask::Acquire { .. }, Ok(Told::Held { .. })) => vec![Met::Held],
        (Ask::Acquire { claim, wish, .. }, Ok(Told::Granted { token, .. })) => {
            granted(claim, *wish, token.get(), &before, &after)
        }
        (Ask::Acquire { .. }, Err(error)) => {
            vec![if error.to_string().contains("given up") { Met::GivenUp } else { Met::Spent }]
        }
        (Ask::Fence { .. }, Ok(Told::Abstains)) => vec![Met::NoFences],
        (Ask::Fence { leases, .. }, Ok(Told::Fenced(answers))) => {
            let longer = (after.longest > before.longest).then_some(Met::RenewedForLonger);
            let each = leases.iter().zip(answers).map(|(lease, fenced)| in_fence(lease, *fenced, answered));
            each.chain(longer).collect()
        }
        (Ask::Release(_), Ok(Told::Released(Released::Released))) => vec![Met::Released],
        (Ask::Release(_), Ok(Told::Released(Released::NotHeld))) => vec![Met::NothingToRelease],
        (Ask::Record { seen, .. }, Ok(Told::Records(answers))) => {
            seen.iter().zip(answers).map(|(sighting, recorded)| in_record(sighting.recording, *recorded)).collect()
        }
        (Ask::Look, Ok(Told::View(_))) => vec![stands(&after)],
        (Ask::Mark { .. }, Ok(Told::View(_))) => vec![either(&before, &after, Met::Marked, Met::NotMarked)],
        (Ask::Install { .. }, Ok(Told::View(_))) => vec![either(&before, &after, Met::Installed, Met::NotInstalled)],
        (Ask::Move { .. }, Ok(Told::View(_))) => vec![either(&before, &after, Met::Moved, Met::NotMoved)],
        (ask, told) => panic!("no answer to {ask:?}: {told:?}"),
    }
}

fn granted(claim: &Claim, wish: FencingToken, token: u64, before: &View, after: &View) -> Vec<Met> {
    let floor = claim.floor.map_or(0, FencingToken::get);
    if before.counter == after.counter {
        let longer = (after.longest > before.longest).then_some(Met::AgainForLonger);
        return [Met::Again].into_iter().chain(longer).collect();
    }
    vec![match token {
        token if token == before.counter + claim.width.get() => Met::AboveCounter,
        token if token == wish.get() => Met::Wish,
        token if token == floor.saturating_add(claim.width.get()) => Met::AboveFloor,
        token if token < floor => Met::FloorFarAhead,
        _ => Met::WishFarAhead,
    }]
}

fn in_fence(lease: &Lease, fenced: Fenced, answered: &Answered) -> Met {
    let held = answered.before.holder(&lease.name, answered.at);
    let own = held.filter(|hold| hold.owner == lease.owner);
    match fenced {
        Fenced::Acknowledged if own.is_some_and(|hold| hold.tokens.high() < lease.tokens.high()) => Met::Raised,
        Fenced::Acknowledged => Met::Acknowledged,
        Fenced::Higher(_) if own.is_some() => Met::Higher,
        Fenced::Higher(_) => Met::SomebodyAfter,
        Fenced::NotHeld if held.is_some() => Met::NotHeldButByAnother,
        Fenced::NotHeld => Met::NotHeldByAnybody,
    }
}

fn in_record(recording: Recording, recorded: Option<Record>) -> Met {
    match (recording, recorded) {
        (_, None) => Met::NotRecorded,
        (Recording::Nothing, Some(_)) => Met::RecordedByOthers,
        (Recording::BeginsAnew(_), Some(_)) => Met::RecordedAnew,
        (Recording::Begins(_), Some(Record { age, .. })) if age.is_zero() => Met::Recorded,
        (Recording::Begins(_), Some(_)) => Met::RecordedBefore,
    }
}

fn stands(view: &View) -> Met {
    match view.state {
        NodeState::Voting(_) => Met::Votes,
        NodeState::Abstaining { .. } => Met::AbstainsNow,
        NodeState::Forgetful => Met::HasForgotten,
    }
}

fn either(before: &View, after: &View, changed: Met, unchanged: Met) -> Met {
    if before == after { unchanged } else { changed }
}
