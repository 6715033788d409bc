//! Servers with other defaults than usual: stricter levels of transactions, other SQL modes, character sets and time limits. Clients do not
//! depend on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_mysql::setup;
use test_support::{MysqlOptions, MysqlServer};

use crate::support::{SOON, Session, claim, client, code, dialect, end, locks, low, meanwhile, take};

const CLIENTS: usize = 4;
const ROUNDS: usize = 10;

/// Clients that hand one lock on, and do not overlap.
fn exchange(url: &str) {
    let is_busy = Arc::new(AtomicBool::new(false));
    let exchange = |i: usize| {
        let (url, is_busy) = (url.to_owned(), Arc::clone(&is_busy));
        meanwhile(move || {
            let locks = locks(&url);
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

/// Names and notes of all kinds, and a fence.
fn uses_odd_names(url: &str) {
    let (client, user) = (client(url), Session::connect(url));
    let long = "🔒".repeat(128);
    for name in ["a\\b", "it's", "\"quoted\"", "naïve", "日本語", "🔒", "per%cent_", "A", "a", "a:b {c}", &long] {
        let held = claim(name);
        let token = low(&take(&client, &held));
        let entry = client.holder(&held.name, SOON).unwrap().unwrap();
        assert_eq!(entry.name.as_str(), name);
        user.begin(name, token).unwrap_or_else(|error| panic!("{name}: {error}"));
        user.run("COMMIT").unwrap();
        assert_eq!(code(user.begin(name, token + 1)), "LH001", "{name}");
    }
    let page = client.list(&lock_core::inspect::Query::all(), SOON).unwrap();
    assert!(page.entries.iter().any(|entry| entry.name.as_str() == "🔒"), "{page:?}");
}

fn server_with(variables: &[&str]) -> MysqlServer {
    MysqlServer::start_with(MysqlOptions::default().volatile().arguments(variables))
}

fn serves(variables: &[&str]) {
    let server = server_with(variables);
    exchange(&server.url());
    uses_odd_names(&server.url());
    // The same with what an administrator has made, whose session has the defaults of the server.
    server.execute("CREATE DATABASE shop; GRANT ALL ON shop.* TO locker@'%'");
    server.execute_in("shop", &setup("locker", "locker").unwrap());
    uses_odd_names(&server.url().replace("/test_locks", "/shop"));
}

#[test]
fn the_default_level_of_transactions_does_not_matter() {
    for level in ["SERIALIZABLE", "READ-UNCOMMITTED"] {
        serves(&[&format!("transaction_isolation={level}")]);
    }
}

#[test]
fn transactions_that_begin_by_themselves_do_not_matter() {
    serves(&["autocommit=0"]);
    serves(&["completion_type=CHAIN"]);
}

#[test]
fn the_sql_mode_does_not_matter() {
    for mode in [dialect().odd_sql_mode, "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT", ""] {
        serves(&[&format!("sql_mode={mode}")]);
    }
}

#[test]
fn character_sets_do_not_matter() {
    serves(&["character_set_server=latin1", "collation_server=latin1_swedish_ci"]);
    serves(&["character_set_server=utf8mb4", &format!("collation_server={}", dialect().odd_collation)]);
}

#[test]
fn other_settings_of_a_careful_operator_do_not_matter() {
    serves(&[dialect().careful, &["lock_wait_timeout=2", "group_concat_max_len=64"]].concat());
    serves(&["innodb_autoinc_lock_mode=0", "lower_case_table_names=1", "innodb_rollback_on_timeout=ON"]);
    serves(&["default_time_zone=+09:00", "explicit_defaults_for_timestamp=OFF", "default_storage_engine=MyISAM"]);
}
