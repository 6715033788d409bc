//! How many connections a client has: few enough for servers that have a hundred.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use lock_postgres::{PostgresConfig, blocking};
use test_support::PostgresServer;
use test_support::bounds::{wait_at_most, wait_for};

use crate::support::{
    Client, SOON, claim, client, end, granted, is_queued, meanwhile, release_of, releases, server, take, waiting,
};

/// What overlaps at most.
const OPEN_MAX: i64 = 8;
/// Longer than an unused connection is kept.
const IDLE: Duration = Duration::from_secs(100);

/// A database that one test uses.
struct Counted {
    server: Arc<PostgresServer>,
    name: String,
    url: String,
}

impl Counted {
    fn new() -> Self {
        static DATABASES: AtomicU64 = AtomicU64::new(0);
        let (server, name) = (server(), format!("counted_{}", DATABASES.fetch_add(1, Ordering::SeqCst)));
        let url = server.database(&name);
        Self { server, name, url }
    }

    fn connections(&self) -> i64 {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'leasehold' AND datname";
        self.server.psql(&format!("{count} = '{}'", self.name)).parse().unwrap()
    }

    #[track_caller]
    fn has(&self, what: &str, connections: i64) {
        wait_for(&format!("{what} has {connections} connections"), || {
            let now = self.connections();
            if now == connections { Ok(()) } else { Err(format!("it has {now}")) }
        });
    }

    /// Waits until nobody has sent anything for a second. A client that begins to listen also looks at its waiters' locks, and a claim
    /// that comes at that moment takes one more connection, as any requests do that overlap.
    #[track_caller]
    fn is_quiet(&self) {
        let is_over = "coalesce(state, '') = 'idle' AND state_change < clock_timestamp() - interval '1 s'";
        let quiet = format!("SELECT bool_and({is_over}) FROM pg_stat_activity WHERE datname = '{}'", self.name);
        wait_for("the clients send nothing more", || self.server.psql(&quiet) == "t");
    }
}

/// Many requests at once.
fn burst(client: &Client) {
    let requests: Vec<_> = (0..32)
        .map(|i| {
            let client = Arc::clone(client);
            meanwhile(move || {
                let claim = claim(&format!("job {i}"));
                take(&client, &claim);
                releases(&client, &claim);
            })
        })
        .collect();
    requests.into_iter().for_each(end);
}

#[test]
fn a_client_opens_few_connections_and_closes_all_but_one_when_it_is_idle() {
    let counted = Counted::new();
    let client = client(&counted.url);
    assert_eq!(counted.connections(), 1);
    burst(&client);
    let after = counted.connections();
    assert!((1..=OPEN_MAX).contains(&after), "{after}");
    wait_at_most(IDLE, "an idle client has one connection", || counted.connections() == 1);
    take(&client, &claim("report"));
    assert_eq!(counted.connections(), 1);
    drop(client);
    counted.has("a client that is gone", 0);
}

#[test]
fn a_client_that_waits_has_two_connections_and_one_that_waits_no_more_none_of_its_own() {
    let counted = Counted::new();
    let (holding, waits, held, queued) =
        (client(&counted.url), client(&counted.url), claim("report"), waiting("report"));
    take(&holding, &held);
    is_queued(waits.acquire(&queued, SOON), 1);
    counted.is_quiet();
    is_queued(waits.acquire(&waiting("report"), SOON), 2);
    // They stay as few while it waits and asks.
    for _ in 0..10 {
        is_queued(waits.acquire(&queued, SOON), 1);
        thread::sleep(Duration::from_millis(100));
        assert_eq!(counted.connections(), 3, "a waiter beside a holder");
    }
    releases(&holding, &held);
    granted(waits.acquire(&queued, SOON));
    drop(holding);
    counted.has("a waiter", 2);
    waits.release(&release_of(&queued), SOON).unwrap();
    drop(waits);
    counted.has("a client that is gone", 0);
}

#[test]
fn a_client_whose_locks_are_renewed_has_two_connections_and_none_once_it_is_dropped() {
    let counted = Counted::new();
    let config = PostgresConfig::from_url(&counted.url).unwrap();
    let locks = lock_blocking::Client::new(Arc::new(wait_for("a connection", || blocking::connect(&config)))).unwrap();
    let ttl = Duration::from_secs(6);
    let guards: Vec<_> = (0..3).map(|i| locks.mutex(format!("job {i}")).ttl(ttl).acquire().unwrap()).collect();
    thread::sleep(ttl * 4 / 3);
    assert!(guards.iter().all(|guard| guard.check().is_ok()), "they were renewed");
    // One that was cut off ends a little later than the next one begins.
    wait_for("two connections at most", || (1..=2).contains(&counted.connections()));
    drop((guards, locks));
    counted.has("a client that is gone", 0);
}

/// The connections of a client belong to its process, and the server notices when they end.
#[test]
fn many_clients_come_and_go_and_leave_no_connection() {
    let counted = Counted::new();
    for _ in 0..20 {
        let client = client(&counted.url);
        let held = claim("report");
        take(&client, &held);
        is_queued(client.acquire(&waiting("report"), SOON), 1);
        releases(&client, &held);
        counted.server.psql_in(&counted.name, "DELETE FROM leasehold.hold; DELETE FROM leasehold.place");
    }
    counted.has("nobody", 0);
}
