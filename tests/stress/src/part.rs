//! What a worker does next, from its seed: the same for both facades.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use std::{env, io, process, thread};

use fastrand::Rng;
use leasehold::{AcquireError, BackendError};

use crate::history::{Leaving, Log, What, now};
use crate::register::Desk;

/// The lock that most seats compete for.
pub const HOT: &str = "hot";
/// A lock that fewer seats compete for.
pub const COOL: &str = "cool";
/// What each seat of a worker wants.
pub const SEATS: [&str; 4] = [HOT, HOT, HOT, COOL];

/// How long a worker rests after an answer that was not a turn.
pub(crate) const REST: Duration = Duration::from_millis(20);
/// How long a worker that cannot connect waits before it tries again.
pub(crate) const RECONNECT: Duration = Duration::from_millis(100);

/// How long a seat rests after its turn at most ...
const HASTY_REST: Duration = Duration::from_millis(10);
/// ... and how long when all seats must get a turn, even those that rarely ask.
const EASY_REST: Duration = Duration::from_secs(3);

/// How long a worker may live after it was told to exit.
const LINGER: Duration = Duration::from_secs(40);

/// Which facade a worker uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facade {
    /// The async one.
    Async,
    /// The blocking one.
    Blocking,
}

impl Facade {
    /// As workers are told.
    pub fn word(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Blocking => "blocking",
        }
    }
}

/// What a worker process was started for.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its facade.
    pub facade: Facade,
    /// The store.
    pub url: String,
    /// Where its history goes.
    pub history: PathBuf,
    /// Where the register is that the locks protect.
    pub register: PathBuf,
    /// The seed of its choices.
    pub seed: u64,
    /// The ttl of its leases.
    pub ttl: Duration,
}

impl Part {
    /// The command line for this part.
    pub fn arguments(&self) -> [String; 6] {
        let [history, register] = [&self.history, &self.register].map(|path| path.to_str().unwrap().to_owned());
        let (seed, ttl) = (self.seed.to_string(), self.ttl.as_millis().to_string());
        [self.facade.word().to_owned(), self.url.clone(), history, register, seed, ttl]
    }

    /// The part that this process was started for.
    ///
    /// # Panics
    /// On a command line that is not one of [`arguments`](Self::arguments).
    pub fn from_command_line() -> Self {
        let mut words = env::args().skip(1);
        let mut next = || words.next().expect("a part");
        let facade = match next().as_str() {
            "async" => Facade::Async,
            "blocking" => Facade::Blocking,
            other => panic!("there is no facade {other}"),
        };
        let (url, history, register) = (next(), next().into(), next().into());
        let (seed, ttl) = (next().parse().unwrap(), Duration::from_millis(next().parse().unwrap()));
        Self { facade, url, history, register, seed, ttl }
    }
}

/// What a worker was told on its input: a line means to rest longer, the end of the input means to exit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders(Arc<AtomicU8>);

/// The seats come back at once after a turn.
const HASTE: u8 = 0;
/// The seats rest long enough for the locks to be free at times.
const EASE: u8 = 1;
/// The seats do not come back.
const END: u8 = 2;

impl Orders {
    pub(crate) fn of_input() -> Self {
        let orders = Self::default();
        let told = orders.clone();
        thread::spawn(move || {
            for _ in io::stdin().lines().map_while(Result::ok) {
                told.0.store(EASE, Ordering::SeqCst);
            }
            told.0.store(END, Ordering::SeqCst);
            // The test stopped checking long ago. This leaves nothing behind if the test was killed together with the server.
            thread::sleep(LINGER);
            process::exit(1);
        });
        orders
    }

    pub(crate) fn are_to_end(&self) -> bool {
        self.0.load(Ordering::SeqCst) == END
    }

    /// How long a seat rests after a turn at most.
    fn rest(&self) -> Duration {
        if self.0.load(Ordering::SeqCst) == HASTE { HASTY_REST } else { EASY_REST }
    }
}

/// One waiter and holder of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) number: usize,
    pub(crate) lock: &'static str,
    pub(crate) ttl: Duration,
    pub(crate) orders: Orders,
    pub(crate) register: Arc<Desk>,
    log: Arc<Log>,
    seed: u64,
}

impl Seat {
    pub(crate) fn all(part: &Part) -> Vec<Self> {
        let (log, orders) = (Arc::new(Log::open(&part.history).unwrap()), Orders::of_input());
        let register = Arc::new(Desk::connect(&part.register));
        let seat = |(number, lock)| {
            let (log, register, orders) = (Arc::clone(&log), Arc::clone(&register), orders.clone());
            Self { number, lock, ttl: part.ttl, orders, register, log, seed: part.seed ^ number as u64 }
        };
        SEATS.into_iter().enumerate().map(seat).collect()
    }

    pub(crate) fn dice(&self) -> Dice {
        Dice { rng: Rng::with_seed(self.seed), ttl: self.ttl, orders: self.orders.clone() }
    }

    pub(crate) fn say(&self, what: What) {
        self.say_of(now(), what);
    }

    /// Records an event at a time that was read before the guard was asked.
    pub(crate) fn say_of(&self, at: u64, what: What) {
        self.log.say(at, self.number, self.lock, what);
    }
}

/// How long a seat waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiting {
    /// Forever.
    Forever,
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

/// The choices of a seat.
#[derive(Debug)]
pub(crate) struct Dice {
    rng: Rng,
    ttl: Duration,
    orders: Orders,
}

impl Dice {
    pub(crate) fn waiting(&mut self) -> Waiting {
        match self.rng.u32(..10) {
            0 => Waiting::Never,
            1 | 2 => Waiting::Limited(self.up_to(self.ttl)),
            3 | 4 => Waiting::Cancelled(self.up_to(self.ttl / 4)),
            5.. => Waiting::Forever,
        }
    }

    pub(crate) fn work(&mut self) -> Work {
        let end = if self.rng.bool() { TurnEnd::Release } else { TurnEnd::Drop };
        match self.rng.u32(..24) {
            // Long enough for renewals.
            0 => Work { steps: 10, step: self.ttl / 8, end },
            1..=4 => Work { steps: 0, step: Duration::ZERO, end },
            5.. => Work { steps: self.rng.u32(1..4), step: self.up_to(Duration::from_millis(4)), end },
        }
    }

    /// How long a seat rests after its turn.
    pub(crate) fn rest(&mut self) -> Duration {
        self.up_to(self.orders.rest())
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.rng.u64(1_000..=u64::try_from(most.as_micros()).unwrap()))
    }
}

/// What an error while waiting is to the history.
pub(crate) fn leaving(error: &AcquireError) -> Leaving {
    let passes = |failed: &BackendError| failed.kind().is_transient();
    if matches!(error, AcquireError::TimedOut { .. }) {
        Leaving::TimedOut
    } else if matches!(error, AcquireError::Backend(failed) if passes(failed)) {
        Leaving::Unavailable
    } else {
        Leaving::Refused(error.to_string())
    }
}
