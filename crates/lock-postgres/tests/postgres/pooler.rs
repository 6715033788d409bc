//! Clients behind PgBouncer, which gives each transaction any connection, and to which `LISTEN` means nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use lock_core::StoreEvent;
use lock_postgres::{PostgresConfig, blocking, nonblocking};
use test_support::bounds::{wait_for, within};
use test_support::{Pooler, PostgresOptions, PostgresServer};

use crate::support::{BRIEF, SOON, Session, claim, client, end, events_of, lasting, low, meanwhile, take};

const CLIENTS: usize = 16;
const ROUNDS: usize = 3;
/// How many connections PgBouncer opens to a database by default.
const POOL: i64 = 20;

/// What a holder does, and whether it was alone.
#[derive(Default)]
struct Work {
    is_busy: AtomicBool,
    done: AtomicU32,
}

impl Work {
    fn turn(&self) {
        assert!(!self.is_busy.swap(true, Ordering::SeqCst), "two have the lock");
        thread::sleep(Duration::from_millis(2));
        self.is_busy.store(false, Ordering::SeqCst);
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

fn on_threads(config: &PostgresConfig, work: &Work) {
    let store = wait_for("a connection", || blocking::connect(config));
    let lock = lock_blocking::Client::new(Arc::new(store)).unwrap().mutex("report").wait(SOON * 2);
    for _ in 0..ROUNDS {
        let guard = lock.acquire().unwrap();
        work.turn();
        guard.release().unwrap();
    }
}

async fn on_tokio(config: &PostgresConfig, work: &Work) {
    let store = nonblocking::connect(config).await.unwrap();
    let lock = lock_async::Client::new(Arc::new(store)).unwrap().mutex("report").wait(SOON * 2);
    for _ in 0..ROUNDS {
        let guard = lock.acquire().await.unwrap();
        work.turn();
        guard.release().await.unwrap();
    }
}

fn run(facade: usize, config: &PostgresConfig, work: &Work) {
    if facade == 0 {
        return on_threads(config, work);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    within("the end of a client", || runtime.block_on(on_tokio(config, work)));
}

#[test]
fn clients_behind_a_pooler_exchange_a_lock_over_a_bounded_number_of_connections() {
    let server = PostgresServer::start_with(PostgresOptions::default().volatile());
    let pooler = Pooler::start(&server);
    server.database("pooled");
    let config = PostgresConfig::from_url(&pooler.url_of("pooled")).unwrap();
    let work = Arc::new(Work::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|i| {
            let (config, work) = (config.clone(), Arc::clone(&work));
            meanwhile(move || run(i % 2, &config, &work))
        })
        .collect();
    let mut most = 0;
    wait_for("the end of the clients", || {
        let open: i64 = server.psql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'pooled'").parse().unwrap();
        most = most.max(open);
        clients.iter().all(thread::JoinHandle::is_finished)
    });
    clients.into_iter().for_each(end);
    assert_eq!(work.done.load(Ordering::SeqCst) as usize, CLIENTS * ROUNDS);
    assert!((1..=POOL).contains(&most), "{most}");
}

/// How long requests are counted. The server's sessions report theirs once a second.
const COUNTED_FOR: Duration = Duration::from_secs(5);
/// How many requests a second come of a client that waits, at most: a look each 10 ms, and what it takes to claim ten times.
const REQUESTS: i64 = 200;
/// How often a second it is notified that the lock may be free, at most: each 100 ms, and once just before.
const TOLD: i64 = 15;

/// A transaction that is fenced by a lease that has expired. The lock looks free, and is not.
fn fenced(url: &str) -> Session {
    let (holding, user) = (client(url), Session::connect(url));
    let token = low(&take(&holding, &lasting(BRIEF, claim("stock"))));
    user.run("SET search_path = leasehold").unwrap();
    user.begin("stock", token).unwrap();
    thread::sleep(BRIEF);
    user
}

/// How many requests the database of a session has served, and the time in microseconds.
fn requests(session: &Session) -> [i64; 2] {
    let count = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    [count, "SELECT leasehold.clock()"].map(|question| session.value(question))
}

/// How often a second the database serves a request, and notifies the client, while it continues to wait.
fn rates(watcher: &Session, told: &Receiver<StoreEvent>) -> [i64; 2] {
    let ([requests_before, begun], _) = (requests(watcher), told.try_iter().count());
    thread::sleep(COUNTED_FOR);
    let (times, [requests_after, ended]) = (told.try_iter().count(), requests(watcher));
    let times = i64::try_from(times).unwrap();
    [requests_after - requests_before, times].map(|count| count * 1_000_000 / (ended - begun))
}

#[test]
fn a_client_that_waits_behind_an_open_fence_and_a_pooler_asks_a_few_times_a_second() {
    let server = PostgresServer::start_with(PostgresOptions::default().volatile());
    let (pooler, url) = (Pooler::start(&server), server.database("fenced"));
    let (user, watcher) = (fenced(&url), Session::connect(&url));
    let config = PostgresConfig::from_url(&pooler.url_of("fenced")).unwrap();
    let store = Arc::new(wait_for("a connection", || blocking::connect(&config)));
    let told = events_of(&*store);
    let lock = lock_blocking::Client::new(store).unwrap().mutex("stock").wait(SOON * 10);
    let waiter = meanwhile(move || lock.acquire().map(drop));
    let is_deaf = "SELECT EXISTS (SELECT FROM leasehold.place WHERE channel = '')";
    wait_for("it knows that notifications do not arrive", || watcher.value::<bool>(is_deaf));
    let [asked, heard] = rates(&watcher, &told);
    assert!((1..REQUESTS).contains(&asked) && (1..TOLD).contains(&heard), "{asked} and {heard} a second");
    user.run("COMMIT").unwrap();
    end(waiter).unwrap();
}
