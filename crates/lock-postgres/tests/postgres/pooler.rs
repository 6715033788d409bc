//! Clients behind PgBouncer, which gives each transaction any connection, and to which `LISTEN` means nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use lock_postgres::{PostgresConfig, blocking, nonblocking};
use test_support::bounds::{wait_for, within};
use test_support::{Pooler, PostgresOptions, PostgresServer};

use crate::support::{SOON, end, meanwhile};

const CLIENTS: usize = 16;
const ROUNDS: usize = 3;
/// What PgBouncer opens to a database unless it is told otherwise.
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
        std::thread::sleep(Duration::from_millis(2));
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
        clients.iter().all(std::thread::JoinHandle::is_finished)
    });
    clients.into_iter().for_each(end);
    assert_eq!(work.done.load(Ordering::SeqCst) as usize, CLIENTS * ROUNDS);
    assert!((1..=POOL).contains(&most), "{most}");
}
