//! What users want from locks, and what they do while they hold.

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::TurnId;
use lock_core::{Hold, LockName, Terms, Ticket, Ttl};

use crate::dice::Dice;

/// How long a user waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Not,
    For(Duration),
    Forever,
}

/// What a new user wants.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) site: usize,
    pub(crate) ttl: Ttl,
    pub(crate) wait: Wait,
    /// When it gives up by itself, if it does.
    pub(crate) cancel: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) hold_for: Duration,
    pub(crate) part: Part,
}

/// Which part of a set of locks is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It is no set.
    Alone,
    /// The first lock of two; this is the second.
    First { then: usize },
    /// The second, while this turn holds the first.
    Last { first: (usize, TurnId) },
}

/// Something that a user does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Join(Wish),
    Leave {
        site: usize,
        turn: TurnId,
    },
    /// A holder wants another ttl, or another mode.
    Replace {
        site: usize,
        turn: TurnId,
        terms: Terms,
    },
    /// A user does something with a latch, which is to last for this ttl.
    Latch {
        name: LockName,
        wanted: Use,
        ttl: Ttl,
    },
    /// A holder lets go of its lease, for others to adopt.
    Detach {
        site: usize,
        turn: TurnId,
    },
    /// Somebody who has the ticket wants to go on with the lease.
    Adopt(Wish, Ticket),
    /// All users that wait there give up.
    GiveUp {
        site: usize,
    },
    /// It checks whether it still holds, and writes a little later if so.
    Check {
        site: usize,
        turn: TurnId,
    },
    /// The write, which nothing stops any more.
    Write {
        site: usize,
        turn: TurnId,
        hold: Arc<Hold>,
    },
}

/// What a user wants from a latch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// It arrives under this id, or as somebody who is new.
    Arrive(Option<u32>),
    Expect(u32),
    Wait(Option<Duration>),
    Reset,
}

impl Use {
    pub(crate) fn any(dice: &mut Dice) -> Self {
        match dice.from(0, 9) {
            0..=3 => Self::Arrive(dice.chance(500).then(|| u32::try_from(dice.from(0, 2)).unwrap_or_default())),
            4 | 5 => Self::Expect(dice.pick(&[2, 2, 2, 3]).unwrap_or(2)),
            6 | 7 => Self::Wait(dice.chance(500).then(|| dice.millis(0, 8000))),
            _ => Self::Reset,
        }
    }
}

impl Wish {
    pub(crate) fn any(dice: &mut Dice, sites: usize, ttls: &[Duration]) -> Self {
        let wait = match dice.from(0, 5) {
            0 => Wait::Not,
            1 | 2 => Wait::For(dice.millis(1, 5000)),
            _ => Wait::Forever,
        };
        let cancel = dice.chance(200).then(|| dice.millis(0, 4000));
        let max_hold = dice.chance(150).then(|| dice.millis(1, 5000));
        let long = if dice.chance(150) { 20_000 } else { 1000 };
        let (site, ttl, hold_for) = (dice.from(0, sites - 1), any_ttl(dice, ttls), dice.millis(0, long));
        Self { site, ttl, wait, cancel, max_hold, hold_for, part: Part::Alone }
    }

    /// A user that waits without limit, and holds for a short time.
    pub(crate) fn patient(dice: &mut Dice, site: usize, ttls: &[Duration]) -> Self {
        let (ttl, hold_for) = (any_ttl(dice, ttls), dice.millis(0, 200));
        Self { site, ttl, wait: Wait::Forever, cancel: None, max_hold: None, hold_for, part: Part::Alone }
    }
}

fn any_ttl(dice: &mut Dice, ttls: &[Duration]) -> Ttl {
    dice.pick(ttls).and_then(|length| Ttl::new(length).ok()).unwrap_or(Ttl::DEFAULT)
}
