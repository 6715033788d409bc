//! What `doctor` says to a role that sees only its own sessions.

use lock_core::StoreConfig;
use lock_core::examine::{Check, Verdict};
use lock_postgres::{PostgresConfig, setup};
use test_support::PostgresServer;

use crate::standbys::{make_synchronous, primary_and_standby};

fn found(url: &str, check: &str) -> Check {
    let checks = PostgresConfig::from_url(url).unwrap().examine().unwrap();
    checks.into_iter().find(|found| found.check == check).unwrap()
}

/// A URL for a role that may use locks, and nothing else.
fn as_locker(server: &PostgresServer) -> String {
    server.psql("CREATE ROLE \"our locker\" LOGIN");
    server.psql(&setup("leasehold", "our locker", "our locker").unwrap());
    server.url().replace("postgres://postgres@", "postgres://our%20locker@")
}

#[test]
fn a_locker_who_cannot_see_the_standbys_is_told_so_and_warned_of_nothing() {
    let [primary, standby] = primary_and_standby();
    make_synchronous(&primary);
    let url = as_locker(&primary);
    for (check, hidden) in [("standby", "state of the standbys"), ("transactions", "transactions of other roles")] {
        let Check { verdict, message, remedy, .. } = found(&url, check);
        assert!(verdict == Verdict::Remark && message.contains(hidden), "{message}");
        assert!(remedy.unwrap().contains("GRANT pg_read_all_stats TO \"our locker\""));
    }
    primary.psql("GRANT pg_read_all_stats TO \"our locker\"");
    assert!(found(&url, "standby").message.contains("1 of 1 synchronous"));
    assert_eq!(found(&url, "transactions").verdict, Verdict::Ok);
    // That nobody is connected is not hidden.
    primary.psql("REVOKE pg_read_all_stats FROM \"our locker\"");
    let senders = "SELECT count(*) FROM pg_stat_replication";
    drop(standby);
    test_support::bounds::wait_for("the end of the standby", || primary.psql(senders) == "0");
    assert_eq!(found(&url, "standby").verdict, Verdict::Finding);
}
