use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{LockName, Ttl};
use lock_host::{Event, HostClock, ManualClock, Observer};
use lock_memory::MemoryStore;
use lock_memory::faults::{Faults, Faulty};
use lock_memory::node::MemoryNode;
use lock_redis::RedisConfig;
use lock_redlock::quorum::Purpose;
use lock_sqlite::SqliteConfig;
use tempfile::TempDir;
use test_support::RedisServer;
use test_support::bounds::Watchdog;

/// Longer than any step takes. A test that waits this long fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Longer than a client takes to read an answer that was sent. Then it waits, and the clock may leap.
pub(crate) const BRIEF: Duration = Duration::from_millis(50);

/// A store in memory on a manual clock.
pub(crate) struct Bench {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
    pub(crate) faults: Faults,
    pub(crate) released: Released,
    _watchdog: Watchdog,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::new(Arc::new(clock.clone()));
        let (faults, released) = (Faults::new(), Released::default());
        Self { clock, store, faults, released, _watchdog: Watchdog::over_this_test() }
    }

    pub(crate) fn tokio(&self) -> lock_async::Client {
        let backend = Faulty::new(self.store.nonblocking(), &self.faults);
        let builder = lock_async::Client::builder(Arc::new(backend)).clock(Arc::new(self.clock.clone()));
        builder.observer(Arc::new(self.released.clone())).build().unwrap()
    }

    pub(crate) fn plain(&self) -> lock_blocking::Client {
        let backend = Faulty::new(self.store.blocking(), &self.faults);
        let builder = lock_blocking::Client::builder(Arc::new(backend)).clock(Arc::new(self.clock.clone()));
        builder.observer(Arc::new(self.released.clone())).build().unwrap()
    }

    /// Which of the locks are free.
    pub(crate) fn free<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let builder = lock_blocking::Client::builder(Arc::new(self.store.blocking()));
        let probe = builder.clock(Arc::new(self.clock.clone())).build().unwrap();
        names.iter().copied().filter(|name| probe.mutex(name).try_acquire().unwrap().is_some()).collect()
    }
}

/// The names of released locks, in their order.
#[derive(Clone, Default)]
pub(crate) struct Released(Arc<Mutex<Vec<LockName>>>);

impl Released {
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

impl Observer for Released {
    fn observe(&self, event: &Event) {
        if let Event::Released { lock, .. } = event {
            self.0.lock().unwrap().push(lock.clone());
        }
    }
}

/// A store on the host's clock.
pub(crate) enum Store {
    Memory(MemoryStore),
    Sqlite(TempDir),
    Redis(RedisServer),
    Quorum(Vec<MemoryNode>),
}

impl Store {
    pub(crate) fn each() -> [Self; 3] {
        [Self::memory(), Self::sqlite(), Self::redis()]
    }

    /// Those, and one without a queue.
    pub(crate) fn with_quorum() -> [Self; 4] {
        let [memory, sqlite, redis] = Self::each();
        [memory, sqlite, redis, Self::quorum()]
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(MemoryStore::default())
    }

    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(test_support::temp_dir())
    }

    pub(crate) fn redis() -> Self {
        Self::Redis(RedisServer::start())
    }

    pub(crate) fn quorum() -> Self {
        let nodes: Vec<_> = ["a", "b", "c"].map(|node| MemoryNode::new(node, Arc::new(HostClock))).into();
        let quorum = lock_redlock::blocking::Redlock::of(nodes.clone(), max_ttl()).unwrap();
        quorum.pass(Purpose::Init, PATIENCE).unwrap();
        Self::Quorum(nodes)
    }

    pub(crate) async fn tokio(&self) -> lock_async::Client {
        let client = match self {
            Self::Memory(store) => lock_async::Client::new(Arc::new(store.nonblocking())),
            Self::Sqlite(folder) => {
                lock_async::Client::new(Arc::new(lock_sqlite::nonblocking::Sqlite::open(&file(folder)).unwrap()))
            }
            Self::Redis(server) => {
                let config = RedisConfig::from_url(&server.url()).unwrap();
                lock_async::Client::new(Arc::new(lock_redis::nonblocking::Redis::connect(&config).await.unwrap()))
            }
            Self::Quorum(nodes) => {
                let connecting = lock_redlock::nonblocking::Redlock::connect(nodes.clone(), max_ttl(), PATIENCE);
                lock_async::Client::new(Arc::new(connecting.await.unwrap().0))
            }
        };
        client.unwrap()
    }

    pub(crate) fn plain(&self) -> lock_blocking::Client {
        let client = match self {
            Self::Memory(store) => lock_blocking::Client::new(Arc::new(store.blocking())),
            Self::Sqlite(folder) => {
                lock_blocking::Client::new(Arc::new(lock_sqlite::blocking::Sqlite::open(&file(folder)).unwrap()))
            }
            Self::Redis(server) => {
                let config = RedisConfig::from_url(&server.url()).unwrap();
                lock_blocking::Client::new(Arc::new(lock_redis::blocking::Redis::connect(&config).unwrap()))
            }
            Self::Quorum(nodes) => {
                let connected = lock_redlock::blocking::Redlock::connect(nodes.clone(), max_ttl(), PATIENCE);
                lock_blocking::Client::new(Arc::new(connected.unwrap().0))
            }
        };
        client.unwrap()
    }
}

fn max_ttl() -> Ttl {
    Ttl::new(Duration::from_secs(60)).unwrap()
}

pub(crate) fn file(folder: &TempDir) -> SqliteConfig {
    SqliteConfig::new(folder.path().join("locks.db"))
}

/// Waits in steps until `done`.
pub(crate) async fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..4000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("waited in vain for {what}");
}
