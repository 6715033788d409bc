//! sqlx's advisory lock of PostgreSQL and leasehold in the same trouble. `benches/advisory` prints the same scenes.

mod scenes;

use scenes::{Late, TTL, ours, theirs};
use test_support::PostgresServer;

#[tokio::test]
async fn a_session_that_the_server_ends_frees_the_advisory_lock_and_nobody_says_so() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    let (ours, theirs) = tokio::join!(ours::session_killed(&server), theirs::session_killed(&another));
    let (ours, (theirs, statement)) = (ours.unwrap(), theirs.unwrap());
    assert_eq!((ours.told, ours.second), (None, None), "the lease continues on another connection");
    assert!(theirs.told.is_none() && theirs.second.is_some(), "{theirs}");
    assert_eq!(statement, Late::Refused, "the holder learns of it by its next statement");
}

#[tokio::test]
async fn a_server_that_crashes_forgets_the_advisory_lock_and_keeps_the_lease() {
    let (mut server, mut another) = (PostgresServer::start(), PostgresServer::start());
    let (ours, theirs) = tokio::join!(ours::server_killed(&mut server), theirs::server_killed(&mut another));
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    assert_eq!((ours.told, ours.second), (None, None), "the lease is on disk");
    assert!(theirs.told.is_none() && theirs.second.is_some(), "{theirs}");
}

#[tokio::test]
async fn a_holder_that_is_cut_off_loses_the_lease_and_keeps_the_advisory_lock() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    let (ours, theirs) = tokio::join!(ours::cut_off(&server), theirs::cut_off(&another));
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    assert!(ours.told.is_some_and(|told| told <= TTL), "{ours}");
    assert!(ours.second.is_some() && ours.told < ours.second, "told before somebody else is let in: {ours}");
    assert_eq!((theirs.told, theirs.second), (None, None), "an advisory lock has no end of its own");
}

/// Here the advisory lock is better: the server sees that a connection is closed, and need not wait for the end of a lease.
#[tokio::test]
async fn a_program_that_dies_frees_the_advisory_lock_at_once_and_the_lease_after_its_ttl() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    let (ours, theirs) = tokio::join!(ours::died(&server), theirs::died(&another));
    let (ours, theirs) = (ours.unwrap().0.unwrap(), theirs.unwrap().0.unwrap());
    assert!(theirs < ours && ours > TTL / 2, "{theirs:?}, {ours:?}");
}

/// Here leasehold is no better: nobody ends what a running program has forgotten, unless it has said how long it may last.
#[tokio::test]
async fn a_forgotten_guard_keeps_either_lock() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    let ours = async { tokio::join!(ours::forgotten(&server), ours::forgotten_with_a_limit(&server)) };
    let ((ours, limited), theirs) = tokio::join!(ours, theirs::forgotten(&another));
    assert_eq!((ours.unwrap().0, theirs.unwrap().0), (None, None));
    assert!(limited.unwrap().second.is_some());
}

#[tokio::test]
async fn a_connection_that_goes_back_to_the_pool_with_its_lock_lets_the_next_task_in() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    let (ours, theirs) = tokio::join!(ours::same_program(&server), theirs::leaked_into_the_pool(&another));
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    assert_eq!(ours.second, None, "a client excludes itself");
    assert!(theirs.second.is_some(), "{theirs}");
}

#[tokio::test]
async fn a_dropped_guard_frees_the_lock_unless_its_connection_stays_unused() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    assert!(ours::dropped(&server).await.unwrap().0.is_some());
    let (pooled, borrowed) = tokio::join!(theirs::dropped_into_the_pool(&another), theirs::dropped_by_itself(&another));
    assert!(pooled.unwrap().0.is_some());
    assert_eq!(borrowed.unwrap().0, None);
}

#[tokio::test]
async fn a_late_write_is_refused_by_the_fence_and_accepted_without_one() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    assert_eq!(ours::late_write(&server).await.unwrap(), Late::Refused);
    assert_eq!(theirs::late_write(&another).await.unwrap(), Late::Written);
}

#[tokio::test]
async fn a_later_holder_has_a_higher_token() {
    let [first, second] = ours::tokens(&PostgresServer::start()).await.unwrap();
    assert!(first < second, "{first} {second}");
}

#[tokio::test]
async fn eight_advisory_locks_pin_eight_connections() {
    let (server, another) = (PostgresServer::start(), PostgresServer::start());
    let (ours, theirs) = (ours::eight_held(&server).await.unwrap(), theirs::eight_held(&another).await.unwrap());
    assert_eq!(theirs, 8);
    assert!(ours < 8, "{ours}");
}
