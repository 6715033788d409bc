//! Servers that follow another one: they are passed over, and with synchronous ones a fail-over loses nothing.

use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Lease};
use lock_postgres::{PostgresConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{PostgresOptions, PostgresServer};

use crate::support::{
    Client, SHORT, SOON, claim, client, end, is_busy, is_queued, low, meanwhile, release_of, releases, take, waiting,
};

pub(crate) fn primary_and_standby() -> [PostgresServer; 2] {
    let primary = PostgresServer::start_with(PostgresOptions::default().volatile());
    let standby = primary.standby();
    [primary, standby]
}

fn url_of(servers: &[&PostgresServer]) -> String {
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    format!("postgres://postgres@{}/postgres?sslmode=disable", hosts.join(","))
}

fn refusal(url: &str) -> BackendError {
    blocking::connect(&PostgresConfig::from_url(url).unwrap()).unwrap_err()
}

#[test]
fn a_standby_is_refused_and_the_primary_is_found_whatever_the_order() {
    let [primary, standby] = primary_and_standby();
    let error = refusal(&url_of(&[&standby]));
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error:?}");
    assert!(error.to_string().contains("standby"), "{error}");
    assert!(error.remedy().unwrap().contains("name the primary"), "{error:?}");
    let error = refusal(&url_of(&[&standby, &standby]));
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert_eq!(error.to_string().matches("is a standby").count(), 2, "{error}");
    assert_eq!(error.to_string().matches("name the primary").count(), 1, "{error}");
    let held = claim("report");
    take(&client(&url_of(&[&standby, &primary])), &held);
    is_busy(client(&url_of(&[&primary, &standby])).acquire(&claim("report"), SOON));
    // A server that is down is passed over, too.
    let down = standby.port();
    drop(standby);
    let mut several = url_of(&[&primary]);
    several = several.replace("127.0.0.1", &format!("127.0.0.1:{down},127.0.0.1"));
    is_busy(client(&several).acquire(&claim("report"), SOON));
}

/// From now on, nothing is answered that the standby does not have.
pub(crate) fn make_synchronous(primary: &PostgresServer) {
    primary.psql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.psql("SELECT pg_reload_conf()");
    let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    wait_for("the standby is synchronous", || primary.psql(synchronous) == "1");
}

/// Locks that are held in the ways in which a lock comes to be held.
fn hold_some(client: &Client) -> Vec<Lease> {
    let mut leases: Vec<Lease> = (0..5).map(|i| take(client, &claim(&format!("job {i}")))).collect();
    let (first, second) = (claim("handed"), waiting("handed"));
    take(client, &first);
    is_queued(client.acquire(&second, SOON), 1);
    releases(client, &first);
    leases.push(take(client, &second));
    leases
}

#[test]
fn a_synchronous_standby_has_all_grants_when_it_is_promoted_and_its_tokens_are_higher() {
    let [mut primary, standby] = primary_and_standby();
    let url = url_of(&[&primary, &standby]);
    let clients = client(&url);
    make_synchronous(&primary);
    let leases = hold_some(&clients);
    primary.kill();
    standby.promote();
    let highest = leases.iter().map(low).max().unwrap();
    let after = client(&url);
    for lease in &leases {
        is_busy(after.acquire(&claim(lease.name.as_str()), SOON));
        assert_eq!(after.fence(lease, SOON), Ok(lock_core::Fenced::Acknowledged));
    }
    assert!(low(&take(&after, &claim("another"))) > highest);
    // Clients from before go on there.
    let answer = wait_for("an answer of the new primary", || clients.renew(&leases, SOON));
    assert!(answer.iter().all(|answer| matches!(answer, lock_core::Renewed::Renewed { .. })), "{answer:?}");
}

#[test]
fn a_grant_that_the_standby_does_not_have_is_not_answered() {
    let [primary, standby] = primary_and_standby();
    let clients = client(&url_of(&[&primary]));
    let held = claim("released");
    take(&clients, &held);
    make_synchronous(&primary);
    standby.stop();
    let error = clients.acquire(&claim("report"), SHORT).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{error:?}");
    // Nobody relies on this.
    clients.release(&release_of(&held), Duration::from_secs(5)).unwrap();
    standby.resume();
    take(&clients, &claim("another"));
}

#[test]
fn a_grant_whose_wait_for_the_standby_is_cancelled_is_not_answered() {
    let [primary, standby] = primary_and_standby();
    let clients = client(&url_of(&[&primary]));
    take(&clients, &claim("another"));
    make_synchronous(&primary);
    standby.stop();
    let asking = meanwhile(move || clients.acquire(&claim("report"), SOON));
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    wait_for("somebody waits for the standby", || primary.psql(cancel) == "t");
    let error = end(asking).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::Unknown), "{error:?}");
    standby.resume();
}
