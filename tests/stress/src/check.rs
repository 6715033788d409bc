//! What must be true of the turns of all workers together: who may hold beside whom, and with which tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cast::limit;
use crate::hold::{Hold, Piece};
use crate::problem::Problem;
use crate::turn::Turn;

/// A moment at which the server lost its data. Earlier leases stay valid until they expire, and others may be granted
/// meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When the loss was complete.
    pub at: u64,
    /// The server's clock in microseconds then: tokens of grants before are lower, and those of grants after are not.
    pub watermark: u64,
    /// The lock whose leases were lost; `None` if those of all locks were.
    pub lock: Option<&'static str>,
}

/// A change of the limit of a semaphore.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The semaphore.
    pub lock: &'static str,
    /// Its limit from then on.
    pub limit: u32,
    /// When the request was sent.
    pub sent: u64,
    /// When it had been answered.
    pub answered: u64,
}

/// What histories are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The losses of data.
    pub losses: &'a [Loss],
    /// The changes of limits, one after the other.
    pub changes: &'a [Change],
    /// The ttl of all leases.
    pub ttl: Duration,
}

/// Whether turns overlapped that should not, whether more permits were held than there are, and whether tokens rose in the
/// order in which turns began.
///
/// A writer is alone, and has a token above all before. A reader is not beside a writer, and has a token above those of the
/// writers before. A slot is held once at a time, and its tokens rise.
pub fn exclusion(mut turns: Vec<Turn>, rules: Rules<'_>) -> Vec<Problem> {
    turns.sort_by_key(|turn| turn.from);
    let locks: BTreeSet<&str> = turns.iter().map(|turn| turn.lock.as_str()).collect();
    let of_lock = |lock| turns.iter().filter(move |turn| turn.lock == lock).collect::<Vec<_>>();
    locks.into_iter().flat_map(|lock| one_lock(&of_lock(lock), rules)).collect()
}

fn one_lock(turns: &[&Turn], rules: Rules<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (mut open, mut highest): (Vec<&Turn>, BTreeMap<Piece, u64>) = (Vec::new(), BTreeMap::new());
    for (place, &turn) in turns.iter().enumerate() {
        open.retain(|before| before.until >= turn.from);
        let beside: Vec<&Turn> =
            open.iter().copied().filter(|before| !rules.excuse(before, turn, before.until.min(turn.until))).collect();
        let excluded = beside.iter().filter(|before| pairs(before, turn).next().is_some());
        problems.extend(excluded.map(|&before| Problem::Overlap(before.clone(), turn.clone())));
        problems.extend(too_many(turn, &beside, rules.limit_of(turn)));
        if is_below(turn, &highest) {
            let unexcused = turns[..place].iter().filter(|before| !rules.excuse(turn, before, turn.from));
            let above = unexcused.filter(|before| pairs(before, turn).any(|(old, new)| new <= old));
            problems.extend(above.map(|&before| Problem::Order(before.clone(), turn.clone())));
        }
        for (piece, token) in turn.hold.pieces() {
            let highest = highest.entry(piece).or_default();
            *highest = token.max(*highest);
        }
        open.push(turn);
    }
    problems
}

/// The tokens of the pieces of two turns that exclude each other.
fn pairs(before: &Turn, turn: &Turn) -> impl Iterator<Item = (u64, u64)> {
    let (before, pieces) = (before.hold.pieces(), turn.hold.pieces());
    let with = move |(piece, new): (Piece, u64)| {
        let excluded = before.clone().into_iter().filter(move |(other, _)| piece.excludes(*other));
        excluded.map(move |(_, old)| (old, new))
    };
    pieces.into_iter().flat_map(with)
}

/// Whether any turn before had a token that this one should be above. Most often none had.
fn is_below(turn: &Turn, highest: &BTreeMap<Piece, u64>) -> bool {
    let excluded =
        |piece: Piece, token: u64| highest.iter().any(|(other, highest)| piece.excludes(*other) && token <= *highest);
    turn.hold.pieces().into_iter().any(|(piece, token)| excluded(piece, token))
}

fn too_many(turn: &Turn, beside: &[&Turn], limit: u32) -> Option<Problem> {
    let Hold::Permits(slots) = &turn.hold else { return None };
    if slots.iter().any(|(slot, _)| *slot >= limit) {
        return Some(Problem::NoSuchSlot(turn.clone()));
    }
    let count = slots.len() + beside.iter().map(|turn| turn.hold.pieces().len()).sum::<usize>();
    (count > usize::try_from(limit).unwrap()).then(|| Problem::TooMany(turn.clone(), count))
}

impl Rules<'_> {
    /// The highest limit that was in force at any time at which the turn may have been granted.
    fn limit_of(&self, turn: &Turn) -> u32 {
        let before = self.changes.iter().filter(|change| change.lock == turn.lock && change.sent <= turn.from);
        let (earlier, meanwhile): (Vec<&Change>, Vec<&Change>) =
            before.partition(|change| change.answered < turn.since);
        let first = earlier.last().map_or_else(|| limit(&turn.lock), |change| change.limit);
        meanwhile.into_iter().fold(first, |highest, change| highest.max(change.limit))
    }

    /// Whether one of the two was granted before a loss and the other after it, and the older lease may have lasted
    /// until `last`.
    fn excuse(&self, one: &Turn, other: &Turn, last: u64) -> bool {
        let (lock, one, other) = (&*one.lock, one.hold.token(), other.hold.token());
        let (old, new) = (one.min(other), one.max(other));
        let lease = u64::try_from(self.ttl.as_nanos()).unwrap();
        let is_of_lock = |loss: &Loss| loss.lock.is_none_or(|lost| lost == lock);
        let is_between = |loss: &Loss| old < loss.watermark && loss.watermark <= new && last <= loss.at + lease;
        self.losses.iter().any(|loss| is_of_lock(loss) && is_between(loss))
    }
}

#[cfg(test)]
mod tests;
