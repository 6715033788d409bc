//! A client of either facade.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::ManualClock;
use leasehold::memory::MemoryStore;
use leasehold::memory::faults::{Faults, Faulty};
use leasehold::observe::{Event, Observer};
use leasehold::redis::RedisConfig;
use leasehold::{AcquireError, Kit as _, blocking};
use test_support::bounds::wait_for;
use tokio::runtime::Runtime;

pub(crate) enum Client {
    Async(Runtime, leasehold::Client),
    Blocking(blocking::Client),
}

pub(crate) enum Guard<'a> {
    Async(&'a Runtime, leasehold::Guard),
    Blocking(blocking::Guard),
}

/// Where the locks are.
pub(crate) enum Store {
    Memory(MemoryStore),
    Redis(Box<RedisConfig>),
}

/// What a client is made of, apart from its store.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    pub(crate) clock: ManualClock,
    pub(crate) faults: Faults,
    pub(crate) told: Arc<Told>,
}

/// What was reported so far. The metrics were recorded before.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<&'static str>>);

impl Observer for Told {
    fn observe(&self, event: &Event) {
        self.0.lock().unwrap().push(event.name());
    }
}

impl Told {
    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|told| **told == name).count()
    }
}

impl Parts {
    /// Has time pass in small steps until this was reported so often.
    #[track_caller]
    pub(crate) fn pass_until(&self, step: Duration, name: &str, count: usize) {
        wait_for(&format!("{name:?} to be reported"), || {
            self.clock.advance(step);
            (self.told.count(name) >= count).then_some(())
        });
    }
}

impl Store {
    pub(crate) fn on_tokio(&self, parts: &Parts) -> Client {
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(async {
            let builder = match self {
                Self::Memory(store) => {
                    leasehold::Client::builder(Arc::new(Faulty::new(store.nonblocking(), &parts.faults)))
                }
                Self::Redis(config) => {
                    let redis = leasehold::redis::nonblocking::Redis::connect(config).await.unwrap();
                    leasehold::Client::builder(Arc::new(Faulty::new(redis, &parts.faults)))
                }
            };
            builder.clock(Arc::new(parts.clock.clone())).observer(parts.told.clone()).build().unwrap()
        });
        Client::Async(runtime, client)
    }

    pub(crate) fn on_threads(&self, parts: &Parts) -> Client {
        let builder = match self {
            Self::Memory(store) => blocking::Client::builder(Arc::new(Faulty::new(store.blocking(), &parts.faults))),
            Self::Redis(config) => {
                let redis = leasehold::redis::blocking::Redis::connect(config).unwrap();
                blocking::Client::builder(Arc::new(Faulty::new(redis, &parts.faults)))
            }
        };
        Client::Blocking(builder.clock(Arc::new(parts.clock.clone())).observer(parts.told.clone()).build().unwrap())
    }
}

impl Client {
    pub(crate) fn acquire(&self, name: &str) -> Guard<'_> {
        self.acquire_for(name, Duration::from_secs(3600))
    }

    /// Holds it for so long at most.
    pub(crate) fn acquire_for(&self, name: &str, max_hold: Duration) -> Guard<'_> {
        match self {
            Self::Async(runtime, client) => {
                let lock = client.mutex(name).max_hold(max_hold);
                Guard::Async(runtime, runtime.block_on(lock.acquire()).unwrap())
            }
            Self::Blocking(client) => Guard::Blocking(client.mutex(name).max_hold(max_hold).acquire().unwrap()),
        }
    }

    /// Whether it got the lock, without a wait.
    pub(crate) fn tries(&self, name: &str) -> Result<bool, AcquireError> {
        match self {
            Self::Async(runtime, client) => runtime.block_on(client.mutex(name).try_acquire()).map(|got| got.is_some()),
            Self::Blocking(client) => client.mutex(name).try_acquire().map(|got| got.is_some()),
        }
    }

    pub(crate) fn waits(&self, name: &str, wait: Duration) -> Result<(), AcquireError> {
        match self {
            Self::Async(runtime, client) => runtime.block_on(client.mutex(name).wait(wait).acquire()).map(drop),
            Self::Blocking(client) => client.mutex(name).wait(wait).acquire().map(drop),
        }
    }

    /// Ends a wait for a lock that others hold, as only this facade can: it drops the future, or cancels the call.
    pub(crate) fn is_interrupted(&self, name: &str) {
        match self {
            Self::Async(runtime, client) => {
                let soon = Duration::from_millis(200);
                let interrupted = async { tokio::time::timeout(soon, client.mutex(name).acquire()).await.is_err() };
                assert!(runtime.block_on(interrupted));
            }
            Self::Blocking(client) => {
                let token = blocking::CancelToken::new();
                token.cancel();
                assert!(matches!(client.mutex(name).cancelled_by(&token).acquire(), Err(AcquireError::Cancelled)));
            }
        }
    }

    /// Goes on with a lock of this process.
    pub(crate) fn degrades(&self, name: &str) {
        match self {
            Self::Async(runtime, client) => {
                drop(runtime.block_on(client.degrading(name).try_acquire()).unwrap().unwrap());
            }
            Self::Blocking(client) => {
                drop(blocking::Kit::degrading(client, name).try_acquire().unwrap().unwrap());
            }
        }
    }

    pub(crate) fn close(&self) {
        match self {
            Self::Async(runtime, client) => runtime.block_on(client.close()),
            Self::Blocking(client) => client.close(),
        }
    }
}

impl Guard<'_> {
    /// Whether the store has confirmed it.
    pub(crate) fn release(self) -> bool {
        match self {
            Self::Async(runtime, guard) => runtime.block_on(guard.release()).is_ok(),
            Self::Blocking(guard) => guard.release().is_ok(),
        }
    }

    pub(crate) fn detach(self) {
        match self {
            Self::Async(runtime, guard) => drop(runtime.block_on(guard.detach()).unwrap()),
            Self::Blocking(guard) => drop(guard.detach().unwrap()),
        }
    }

    pub(crate) fn token(&self) -> leasehold::FencingToken {
        match self {
            Self::Async(_, guard) => guard.fencing_token(),
            Self::Blocking(guard) => guard.fencing_token(),
        }
    }
}
