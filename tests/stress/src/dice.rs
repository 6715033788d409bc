//! What a seat does next, from the seed of its worker: the same for both facades.

use std::time::Duration;

use fastrand::Rng;

use crate::cast::{Cast, Mistake, Pace, STEADY};
use crate::part::{Orders, Part};

/// How long a seat rests after its turn at most ...
const HASTY_REST: Duration = Duration::from_millis(10);
/// ... and how long when all seats must get a turn, even those that rarely ask.
const EASY_REST: Duration = Duration::from_secs(3);

/// How long a guest waits: far longer than its turn is away ...
const GUEST_WAITS: Duration = Duration::from_secs(20);
/// ... and how long one that passes by waits, at most.
const PASSERBY_WAITS: Duration = Duration::from_millis(400);

/// How long a seat waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiting {
    /// Forever.
    Forever,
    /// Forever, and past those who have no use for what is free.
    Barging,
    /// Not at all.
    Never,
    /// With a `wait` on the lock.
    Limited(Duration),
    /// Until it drops the future.
    Cancelled(Duration),
}

/// How a seat ends its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TurnEnd {
    Release,
    Drop,
}

/// What a seat does in its turn: a number of work steps, with a check after each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) steps: u32,
    pub(crate) step: Duration,
    pub(crate) end: TurnEnd,
}

/// What a seat does with its guard before the end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    None,
    /// It goes on in another mode, or with fewer permits.
    Mode(Work),
    /// It leaves a ticket.
    Ticket,
}

/// The choices of a seat.
#[derive(Debug)]
pub(crate) struct Dice {
    rng: Rng,
    ttl: Duration,
    orders: Orders,
    cast: Cast,
    mistake: Mistake,
}

impl Dice {
    pub(crate) fn of(part: &Part, orders: &Orders, seat: usize) -> Self {
        let &Part { ttl, cast, mistake, seed, .. } = part;
        Self { rng: Rng::with_seed(seed ^ seat as u64), ttl, orders: orders.clone(), cast, mistake }
    }

    pub(crate) fn waiting(&mut self) -> Waiting {
        if self.mistake == Mistake::Pushes {
            return Waiting::Never;
        }
        match self.cast.pace() {
            Pace::Brisk if self.cast == Cast::Guest => return Waiting::Limited(GUEST_WAITS),
            Pace::Brisk if self.rng.bool() => return Waiting::Limited(self.up_to(PASSERBY_WAITS)),
            Pace::Brisk => return Waiting::Cancelled(self.up_to(PASSERBY_WAITS)),
            Pace::Steady | Pace::Brief | Pace::Lasting => return Waiting::Forever,
            Pace::Varied => {}
        }
        match self.rng.u32(..10) {
            0 => Waiting::Never,
            1 | 2 => Waiting::Limited(self.up_to(self.ttl)),
            3 | 4 => Waiting::Cancelled(self.up_to(self.ttl / 4)),
            5 if self.cast == Cast::Kinds => Waiting::Barging,
            5.. => Waiting::Forever,
        }
    }

    pub(crate) fn work(&mut self) -> Work {
        let end = if self.rng.bool() { TurnEnd::Release } else { TurnEnd::Drop };
        match self.cast.pace() {
            Pace::Steady => return Work { steps: 1, step: STEADY / 2 + self.up_to(STEADY), end },
            Pace::Brief | Pace::Brisk => return Work { steps: 1, step: self.up_to(Duration::from_millis(4)), end },
            // Until it is told to end.
            Pace::Lasting => return Work { steps: u32::MAX, step: STEADY, end },
            Pace::Varied => {}
        }
        match self.rng.u32(..24) {
            // Long enough for renewals.
            0 => Work { steps: 10, step: self.ttl / 8, end },
            1..=4 => Work { steps: 0, step: Duration::ZERO, end },
            5.. => Work { steps: self.rng.u32(1..4), step: self.up_to(Duration::from_millis(4)), end },
        }
    }

    /// What a seat does with its guard before the end.
    pub(crate) fn change(&mut self) -> Change {
        match self.rng.u32(..8) {
            0 | 1 if self.cast == Cast::Kinds => Change::Mode(self.work()),
            2 if self.cast == Cast::Kinds => Change::Ticket,
            _ => Change::None,
        }
    }

    /// Whether a seat goes on with the ticket of somebody else, if there is one.
    pub(crate) fn adopts(&mut self) -> bool {
        self.cast == Cast::Kinds && self.rng.bool()
    }

    /// How long a seat rests after its turn.
    pub(crate) fn rest(&mut self) -> Duration {
        self.up_to(match self.cast.pace() {
            Pace::Steady | Pace::Brisk => HASTY_REST / 5,
            Pace::Brief => HASTY_REST * 10,
            Pace::Varied | Pace::Lasting if self.orders.are_to_rest() => EASY_REST,
            Pace::Varied | Pace::Lasting => HASTY_REST,
        })
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.rng.u64(1_000..=u64::try_from(most.as_micros()).unwrap()))
    }
}
