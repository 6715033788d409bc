//! Connections that end, or that the server does not give.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_postgres::{PostgresConfig, blocking};
use test_support::bounds::{wait_at_most, wait_for};
use test_support::{PostgresOptions, PostgresServer};

use crate::support::{SOON, Session, claim, client, end, is_queued, meanwhile, take, waiting};

fn server() -> PostgresServer {
    PostgresServer::start_with(PostgresOptions::default().volatile())
}

fn locks(url: &str) -> lock_blocking::Client {
    let config = PostgresConfig::from_url(url).unwrap();
    lock_blocking::Client::new(Arc::new(wait_for("a connection", || blocking::connect(&config)))).unwrap()
}

/// Ends all connections of clients, as an operator does.
fn cut_all(server: &PostgresServer) {
    server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leasehold'");
}

fn wait_for_a_waiter(server: &PostgresServer) {
    wait_for("a waiter", || server.psql("SELECT count(*) FROM leasehold.place") == "1");
}

#[test]
fn a_waiter_whose_connections_are_cut_again_and_again_gets_the_lock() {
    let server = server();
    let (holding, waits) = (locks(&server.url()), locks(&server.url()));
    let guard = holding.mutex("report").acquire().unwrap();
    let waiter = meanwhile(move || waits.mutex("report").wait(SOON * 2).acquire().map(drop));
    wait_for_a_waiter(&server);
    for _ in 0..5 {
        cut_all(&server);
        thread::sleep(Duration::from_millis(100));
    }
    guard.release().unwrap();
    end(waiter).unwrap();
}

#[test]
fn a_holder_whose_connections_are_cut_keeps_the_lock() {
    let server = server();
    let holding = locks(&server.url());
    let guard = holding.mutex("report").ttl(Duration::from_secs(3)).acquire().unwrap();
    for _ in 0..10 {
        cut_all(&server);
        thread::sleep(Duration::from_millis(500));
    }
    assert!(guard.check().is_ok());
    wait_for("the lock is still its own", || guard.verify());
    guard.release().unwrap();
}

/// What a waiter would listen over is refused: it asks from time to time.
#[test]
fn a_waiter_gets_the_lock_though_its_role_may_have_no_connection_more() {
    let server = server();
    drop(locks(&server.url()));
    server.psql("CREATE ROLE modest LOGIN CONNECTION LIMIT 1; GRANT USAGE ON SCHEMA leasehold TO modest");
    server.psql(
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA leasehold TO modest; GRANT SELECT ON leasehold.layout TO modest",
    );
    let (holding, waits) = (locks(&server.url()), locks(&server.url().replace("postgres@", "modest@")));
    let guard = holding.mutex("report").acquire().unwrap();
    let waiter = meanwhile(move || waits.mutex("report").wait(SOON * 2).acquire().map(drop));
    wait_for_a_waiter(&server);
    thread::sleep(Duration::from_secs(1));
    guard.release().unwrap();
    end(waiter).unwrap();
}

/// A connection that listens is cut before the first notification, while all others of the client are in use. Such a client is not behind a
/// pooler, and listens again.
#[test]
fn a_client_whose_first_listening_was_cut_goes_on_listening() {
    let server = server();
    let waits = client(&server.url());
    let held = claim("report");
    take(&waits, &held);
    take(&waits, &claim("busy"));
    let session = Session::connect(&server.url());
    session.run("BEGIN; SELECT 1 FROM leasehold.lock WHERE name = 'busy' FOR NO KEY UPDATE").unwrap();
    let request = || {
        let client = Arc::clone(&waits);
        meanwhile(move || client.acquire(&claim("busy"), SOON).map(drop))
    };
    let mut requests: Vec<_> = (0..7).map(|_| request()).collect();
    let blocked = "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0";
    wait_for("seven requests wait", || server.psql(blocked) == "7");
    let queued = waiting("report");
    is_queued(waits.acquire(&queued, SOON), 1);
    requests.push(request());
    let listeners = "FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    wait_for("it listens", || server.psql(&format!("SELECT count(*) {listeners}")) == "1");
    server.psql(&format!("SELECT pg_terminate_backend(pid) {listeners}"));
    session.run("COMMIT").unwrap();
    for request in requests {
        end(request).unwrap();
    }
    wait_at_most(SOON, "it listens again", || {
        // It waits for as long as it asks.
        is_queued(waits.acquire(&queued, SOON), 1);
        server.psql(&format!("SELECT count(*) {listeners}")) == "1"
    });
}
