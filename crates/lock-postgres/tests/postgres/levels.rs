//! Databases with other defaults than those of the server: transactions of stricter levels, and statements that must not take long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_postgres::{PostgresConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{PostgresOptions, PostgresServer};

use crate::support::{SOON, end, meanwhile};

const CLIENTS: usize = 4;
const ROUNDS: usize = 10;

/// Clients that hand one lock on, and do not overlap.
fn exchange(url: &str) {
    let is_busy = Arc::new(AtomicBool::new(false));
    let exchange = |i: usize| {
        let (config, is_busy) = (PostgresConfig::from_url(url).unwrap(), Arc::clone(&is_busy));
        meanwhile(move || {
            let store = wait_for("a connection", || blocking::connect(&config));
            let locks = lock_blocking::Client::new(Arc::new(store)).unwrap();
            for _ in 0..ROUNDS {
                let guard = locks.mutex("report").wait(SOON).acquire().unwrap();
                assert!(!is_busy.swap(true, Ordering::SeqCst), "two have the lock");
                is_busy.store(false, Ordering::SeqCst);
                guard.release().unwrap();
                drop(locks.semaphore(format!("gpu {}", i % 2), 1).wait(SOON).acquire().unwrap());
            }
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(exchange).collect();
    clients.into_iter().for_each(end);
}

#[test]
fn clients_exchange_locks_whatever_the_default_level_of_transactions_is() {
    for level in ["repeatable read", "serializable"] {
        let server = PostgresServer::start_with(PostgresOptions::default().volatile());
        server.psql(&format!("ALTER DATABASE postgres SET default_transaction_isolation = '{level}'"));
        exchange(&server.url());
    }
}

/// A waiter's listening is no statement that takes long.
#[test]
fn clients_exchange_locks_under_the_time_limits_of_a_careful_operator() {
    let server = PostgresServer::start_with(PostgresOptions::default().volatile());
    for limit in ["statement_timeout = '2s'", "lock_timeout = '10ms'", "idle_in_transaction_session_timeout = '1s'"] {
        server.psql(&format!("ALTER DATABASE postgres SET {limit}"));
    }
    exchange(&server.url());
}
