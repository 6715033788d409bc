//! What users want from a lock.

use lock_core::{Fairness, Mode, NameKind};

use crate::dice::Dice;

/// What a name is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// Everybody writes.
    Mutex,
    /// Some read.
    ReadWrite,
    /// This many permits.
    Semaphore(u32),
}

impl Usage {
    /// Any, for a store that knows all of them.
    pub(crate) fn any(dice: &mut Dice) -> Self {
        match dice.from(0, 3) {
            0 | 1 => Self::ReadWrite,
            _ => Self::Semaphore(dice.pick(&[1, 2, 3, 5]).unwrap_or(1)),
        }
    }

    pub(crate) fn kind(self) -> NameKind {
        match self {
            Self::Mutex | Self::ReadWrite => NameKind::Lock,
            Self::Semaphore(_) => NameKind::Semaphore,
        }
    }

    /// What the next user asks for.
    pub(crate) fn mode(self, dice: &mut Dice) -> Mode {
        match self {
            Self::Mutex => Mode::Exclusive,
            Self::ReadWrite if dice.chance(350) => Mode::Shared,
            Self::ReadWrite => Mode::Exclusive,
            Self::Semaphore(limit) if dice.chance(500) => permits(1, limit),
            Self::Semaphore(limit) => permits(any_count(dice, limit), limit),
        }
    }

    /// Whether the next user passes others. Where all write, none could.
    pub(crate) fn fairness(self, dice: &mut Dice) -> Fairness {
        if self != Self::Mutex && dice.chance(200) { Fairness::Barging } else { Fairness::Fair }
    }

    /// What a user asks for who takes the name for something else.
    pub(crate) fn other(self, dice: &mut Dice) -> Mode {
        match self {
            Self::Semaphore(limit) if dice.chance(500) => permits(1, limit + 1),
            Self::Semaphore(_) => Mode::Exclusive,
            Self::Mutex | Self::ReadWrite => permits(1, 2),
        }
    }

    /// What a holder wants instead of its own mode.
    pub(crate) fn instead(self, dice: &mut Dice, mode: Mode) -> Mode {
        match mode {
            Mode::Permits { count, limit, .. } if count.get() > 1 => {
                permits(any_count(dice, count.get() - 1), limit.get())
            }
            Mode::Exclusive if self == Self::ReadWrite && dice.chance(500) => Mode::Shared,
            Mode::Shared => Mode::Exclusive,
            Mode::Exclusive | Mode::Permits { .. } | _ => mode,
        }
    }
}

fn any_count(dice: &mut Dice, most: u32) -> u32 {
    u32::try_from(dice.from(1, usize::try_from(most).unwrap_or(1))).unwrap_or(1)
}

fn permits(count: u32, limit: u32) -> Mode {
    Mode::permits(count, limit).unwrap_or_default()
}
