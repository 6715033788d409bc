//! What a worker is told: on its command line, and on its input.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use std::{env, io, process, thread};

use crate::cast::{Cast, Mistake};

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
    /// Its seats.
    pub cast: Cast,
    /// What is wrong with it.
    pub mistake: Mistake,
}

impl Part {
    /// The command line for this part.
    pub fn arguments(&self) -> [String; 8] {
        let [history, register] = [&self.history, &self.register].map(|path| path.to_str().unwrap().to_owned());
        let (seed, ttl) = (self.seed.to_string(), self.ttl.as_millis().to_string());
        let (cast, mistake) = (self.cast.to_word(), self.mistake.to_word());
        [self.facade.word().to_owned(), self.url.clone(), history, register, seed, ttl, cast, mistake]
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
        let (cast, mistake) = (Cast::from_word(&next()), Mistake::from_word(&next()));
        Self { facade, url, history, register, seed, ttl, cast, mistake }
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

    pub(crate) fn are_to_rest(&self) -> bool {
        self.0.load(Ordering::SeqCst) != HASTE
    }
}
