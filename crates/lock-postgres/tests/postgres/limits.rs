//! Limits of semaphores that change while their permits are in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use lock_core::limit::{Act, Request};
use lock_core::{Lease, Limit, Renewed};
use test_support::PostgresServer;
use test_support::bounds::wait_for;

use crate::support::{Client, SOON, client, end, meanwhile, permits, server, take};

/// How often the limit changes.
const ROUNDS: u32 = 300;
/// How many clients renew, and how many permits each of them has.
const CLIENTS: u32 = 3;
const EACH: u32 = 8;
/// The lowest limit that is set.
const LIMIT: u32 = CLIENTS * EACH;

fn set_limit(client: &Client, limit: u32) {
    let [known, limit] = [LIMIT, limit].map(|limit| Limit::new(limit).unwrap());
    let request = Request { name: "gpu".parse().unwrap(), known, act: Act::Set(limit) };
    client.limit(&request, SOON).unwrap();
}

/// Renews leases in batches until this is over. Returns how many batches there were.
fn renews(client: &Client, leases: &[Lease], is_over: &AtomicBool) -> u32 {
    let mut batches = 0;
    while !is_over.load(Ordering::SeqCst) {
        let answers = client.renew(leases, SOON).unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, Renewed::Renewed { .. })), "{answers:?}");
        batches += 1;
    }
    batches
}

/// Starts the clients, each with leases of its own.
fn start_clients(url: &str, is_over: &Arc<AtomicBool>) -> Vec<JoinHandle<u32>> {
    let start = |_| {
        let (client, is_over) = (client(url), Arc::clone(is_over));
        let leases: Vec<Lease> = (0..EACH).map(|_| take(&client, &permits("gpu", 1, LIMIT))).collect();
        meanwhile(move || renews(&client, &leases, &is_over))
    };
    (0..CLIENTS).map(start).collect()
}

/// How many deadlocks there were. Sessions report them when they end, at the latest.
fn deadlocks(server: &PostgresServer) -> String {
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'limited'";
    wait_for("the end of all sessions", || server.psql(open) == "0");
    server.psql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'limited'")
}

/// The server ends a deadlock, and the request that it hits is repeated. So the server is asked whether there were any.
#[test]
fn changes_of_a_limit_and_renewals_in_batches_never_wait_for_each_other_in_a_circle() {
    let (server, is_over) = (server(), Arc::new(AtomicBool::new(false)));
    let url = server.database("limited");
    server.psql("ALTER DATABASE limited SET deadlock_timeout = '10ms'");
    let (clients, operator) = (start_clients(&url, &is_over), client(&url));
    end(meanwhile(move || (0..ROUNDS).for_each(|round| set_limit(&operator, LIMIT + 1 + round % 2))));
    is_over.store(true, Ordering::SeqCst);
    let batches: Vec<u32> = clients.into_iter().map(end).collect();
    assert!(batches.iter().all(|batches| *batches > 0), "{batches:?}");
    assert_eq!(deadlocks(&server), "0");
}
