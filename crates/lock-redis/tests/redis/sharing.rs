//! Several clients on one backend of a real server: whom the server's messages reach.

use std::sync::Arc;
use std::thread;

use lock_core::{Answer, AsyncBackend, BackendError, BlockingBackend, Certainty, Claim, Operation, Queueing, Released};
use lock_memory::faults::{Faults, Faulty};
use lock_redis::{RedisConfig, blocking, nonblocking};
use test_support::RedisServer;
use tokio::runtime::Runtime;

use crate::support::{Client, SOON, both, claim, eventually, release_of, take};

/// One backend with two clients, and a count of its requests.
struct Shared {
    faults: Faults,
    facade: Facade,
}

enum Facade {
    Async(Runtime, Arc<dyn AsyncBackend>, [lock_async::Client; 2]),
    Blocking(Arc<dyn BlockingBackend>, [lock_blocking::Client; 2]),
}

impl Shared {
    fn on_tokio(config: &RedisConfig) -> Self {
        let (faults, runtime) = (Faults::new(), Runtime::new().unwrap());
        let facade = runtime.block_on(async {
            let redis = nonblocking::Redis::connect(config).await.unwrap();
            let backend: Arc<dyn AsyncBackend> = Arc::new(Faulty::new(redis, &faults));
            let clients = [(); 2].map(|()| lock_async::Client::new(Arc::clone(&backend)).unwrap());
            (backend, clients)
        });
        Self { faults, facade: Facade::Async(runtime, facade.0, facade.1) }
    }

    fn on_threads(config: &RedisConfig) -> Self {
        let faults = Faults::new();
        let redis = blocking::Redis::connect(config).unwrap();
        let backend: Arc<dyn BlockingBackend> = Arc::new(Faulty::new(redis, &faults));
        let clients = [(); 2].map(|()| lock_blocking::Client::new(Arc::clone(&backend)).unwrap());
        Self { faults, facade: Facade::Blocking(backend, clients) }
    }

    /// Waits for the lock with one of the clients, and gives it back.
    fn take_turn(&self, client: usize, name: &str) {
        match &self.facade {
            Facade::Async(runtime, _, clients) => runtime.block_on(async {
                clients[client].mutex(name).acquire().await.unwrap().release().await.unwrap();
            }),
            Facade::Blocking(_, clients) => clients[client].mutex(name).acquire().unwrap().release().unwrap(),
        }
    }

    /// Asks for a lock past the clients.
    fn ask(&self, claim: &Claim) -> Result<Answer, BackendError> {
        match &self.facade {
            Facade::Async(runtime, backend, _) => runtime.block_on(backend.acquire(claim, SOON)),
            Facade::Blocking(backend, _) => backend.acquire(claim, SOON),
        }
    }
}

fn shared(server: &RedisServer) -> [(&'static str, Shared); 2] {
    let config = RedisConfig::from_url(&server.url()).unwrap();
    [("async", Shared::on_tokio(&config)), ("blocking", Shared::on_threads(&config))]
}

fn waiters(client: &Client, name: &str) -> u32 {
    client.holder(&name.parse().unwrap(), SOON).unwrap().map_or(0, |entry| entry.waiters)
}

/// A waiter that is notified of its turn does not ask again. A place is refreshed from time to time, so one such turn of
/// several is enough.
#[test]
fn all_clients_of_a_backend_learn_that_their_turn_has_come() {
    let server = RedisServer::start();
    let [_, (_, holder)] = both(&server.url());
    for (facade, shared) in shared(&server) {
        for client in 0..2 {
            let told = (0..4).any(|_| {
                let (held, _) = take(&holder, facade);
                thread::scope(|scope| {
                    let waiter = scope.spawn(|| shared.take_turn(client, facade));
                    eventually("it waits", || waiters(&holder, facade) == 1);
                    // Its subscription is new at first, which asks it to ask once more.
                    thread::sleep(SOON / 25);
                    let asked = shared.faults.calls(Operation::Acquire);
                    let released = holder.release(&release_of(&held, Certainty::Answered), SOON).unwrap();
                    assert_eq!(released, Released::Released);
                    waiter.join().unwrap();
                    shared.faults.calls(Operation::Acquire) == asked
                })
            });
            assert!(told, "{facade}: client {client} had to ask each time");
        }
    }
}

/// A place with this inbox belongs to an owner that no client knows: its turn is released, and does not last for a place.
#[test]
fn a_turn_that_nobody_knows_is_given_back() {
    let server = RedisServer::start();
    let [_, (_, holder)] = both(&server.url());
    for (facade, shared) in shared(&server) {
        let (held, _) = take(&holder, facade);
        let waiter = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        let answer = shared.ask(&waiter);
        assert!(matches!(answer, Ok(Answer::Queued { position: 1, .. })), "{facade}: {answer:?}");
        assert_eq!(holder.release(&release_of(&held, Certainty::Answered), SOON).unwrap(), Released::Released);
        eventually("it is given back", || shared.faults.ran(Operation::Release) == 1);
        take(&holder, facade);
    }
}

/// A task runs its requests itself, with the timers and the connection of the client's runtime.
#[test]
fn a_client_is_used_from_a_runtime_that_has_no_timers_and_no_network() {
    let server = RedisServer::start();
    let config = RedisConfig::from_url(&server.url()).unwrap();
    let (runtime, bare) = (Runtime::new().unwrap(), tokio::runtime::Builder::new_current_thread().build().unwrap());
    let client = runtime.block_on(async {
        let redis = nonblocking::Redis::connect(&config).await.unwrap();
        lock_async::Client::new(Arc::new(redis)).unwrap()
    });
    bare.block_on(async {
        for _ in 0..3 {
            client.mutex("a").acquire().await.unwrap().release().await.unwrap();
        }
    });
}
