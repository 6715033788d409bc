//! What waits behind fenced transactions, and what the options of such transactions are.

use std::time::Duration;

use lock_core::AcquireError;
use lock_mysql::{FenceError, Fences, MysqlConfig};
use mysql::prelude::Queryable;
use mysql::{IsolationLevel, TxOpts};
use test_support::bounds::wait_for;

use crate::support::{
    BRIEF, Place, SHORT, SOON, claim, driver_opts, end, is_told_of_a_fence, lasting, locks, low, meanwhile, operator,
    take,
};

/// Nobody is notified by the commit of a user, and the holder may be gone: the head of the queue polls.
#[test]
fn waiters_behind_an_open_fence_time_out_or_get_the_lock_after_its_commit() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    user.begin("stock", low(&take(&client, &lasting(BRIEF, claim("stock"))))).unwrap();
    let patient = place.locks().mutex("stock").wait(SOON);
    let waiter = meanwhile(move || patient.acquire().map(drop));
    let waits = "SELECT COUNT(*) = 1 FROM leasehold_place WHERE name = 'stock'";
    let watcher = place.session();
    wait_for("a waiter", || watcher.value::<bool>(waits));
    let error = place.locks().mutex("stock").wait(Duration::from_secs(3)).acquire().map(drop).unwrap_err();
    assert!(matches!(error, AcquireError::TimedOut { .. }), "{error:?}");
    wait_for("it has left", || watcher.value::<bool>(waits));
    assert!(!waiter.is_finished());
    user.run("COMMIT").unwrap();
    end(waiter).unwrap();
}

/// The waiters' places end before it does, unless they are refreshed beside it. A slow server is not what this is about.
#[test]
fn a_long_transaction_loses_none_of_those_who_wait_behind_it() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    user.begin("stock", low(&take(&client, &lasting(BRIEF, claim("stock"))))).unwrap();
    let several: Vec<_> = (0..4).map(|_| locks(&format!("{}?op_timeout=20s", place.url))).collect();
    let wait = |i: usize| {
        let lock = several[i % several.len()].mutex("stock").wait(SOON * 3);
        meanwhile(move || lock.acquire().map(drop))
    };
    let waiters: Vec<_> = (0..20).map(wait).collect();
    std::thread::sleep(Duration::from_secs(12));
    let (ended, waiters): (Vec<_>, Vec<_>) = waiters.into_iter().partition(|waiter| waiter.is_finished());
    assert_eq!(ended.into_iter().map(end).collect::<Vec<_>>(), []);
    let queued =
        "SELECT COUNT(*) FROM leasehold_place WHERE until > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
    assert_eq!(place.session().value::<i64>(queued), 4);
    user.run("COMMIT").unwrap();
    for waiter in waiters {
        end(waiter).unwrap();
    }
}

/// A place with a table of sales, and a configuration with a prefix.
fn shop() -> (Place, MysqlConfig) {
    let place = Place::new();
    place.session().run("CREATE TABLE sale (token BIGINT NOT NULL)").unwrap();
    let config = MysqlConfig::from_url(&format!("{}?prefix=shop", place.url)).unwrap();
    (place, config)
}

/// Whether a transaction is fenced by a lease of this name in the database.
fn is_fenced(place: &Place, name: &str) -> bool {
    let look = format!("SELECT 1 FROM leasehold_identity WHERE name = '{name}' FOR UPDATE NOWAIT");
    place.session().run(&look).is_err()
}

#[test]
fn transactions_with_all_kinds_of_options_are_fenced_under_the_name_with_its_prefix() {
    let (place, config) = shop();
    let (locks, fences) = (locks(&format!("{}?prefix=shop", place.url)), Fences::new(&config));
    let mut user = mysql::Conn::new(driver_opts(&place.url)).unwrap();
    let guard = locks.rw_lock("stock").write().acquire().unwrap();
    let levels = [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];
    let options = levels.map(|level| TxOpts::default().set_isolation_level(Some(level)));
    for (i, options) in options.into_iter().chain([TxOpts::default().set_with_consistent_snapshot(true)]).enumerate() {
        let mut transaction = fences.begin_blocking(&mut user, &guard, options).unwrap();
        transaction.query_drop("INSERT INTO sale VALUES (1)").unwrap();
        assert!(is_fenced(&place, "shop:stock"), "{i}");
        // The last one is rolled back.
        if i < 3 {
            transaction.commit().unwrap();
        }
    }
    assert!(!is_fenced(&place, "shop:stock"));
    assert_eq!(place.session().value::<i32>("SELECT COUNT(*) FROM sale"), 3);
}

#[test]
fn a_guard_whose_lease_was_revoked_fences_no_more() {
    let (place, config) = shop();
    let url = format!("{}?prefix=shop", place.url);
    let (locks, operators, fences) = (locks(&url), crate::support::client(&url), Fences::new(&config));
    let mut user = mysql::Conn::new(driver_opts(&place.url)).unwrap();
    let guard = locks.mutex("stock").acquire().unwrap();
    operators.revoke(&"stock".parse().unwrap(), guard.fencing_token(), &operator(), SOON).unwrap();
    let refused = fences.begin_blocking(&mut user, &guard, TxOpts::default()).map(drop).unwrap_err();
    assert!(matches!(&refused, FenceError::Refused { .. }), "{refused}");
    user.query_drop("INSERT INTO sale VALUES (1)").unwrap();
    assert_eq!(place.session().value::<i32>("SELECT COUNT(*) FROM sale"), 1, "no transaction is left open");
}

#[test]
fn an_operator_is_told_how_a_fenced_transaction_ends() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &claim("stock"));
    user.begin("stock", low(&held)).unwrap();
    let error = is_told_of_a_fence(|| client.revoke(&held.name, held.tokens.low(), &operator(), SHORT));
    assert!(error.remedy().unwrap().contains("end it at the server"), "{error:?}");
    place.watcher().run(&format!("KILL {}", user.id())).unwrap();
    client.revoke(&held.name, held.tokens.low(), &operator(), SOON).unwrap();
}

#[test]
fn a_fence_that_waits_in_vain_for_another_turn_leaves_no_transaction_open() {
    let (place, config) = shop();
    let (locks, fences, other) = (locks(&format!("{}?prefix=shop", place.url)), Fences::new(&config), place.session());
    let mut user = mysql::Conn::new(driver_opts(&place.url)).unwrap();
    user.query_drop("SET SESSION innodb_lock_wait_timeout = 1").unwrap();
    let guard = locks.mutex("stock").acquire().unwrap();
    other.begin("shop:stock", guard.fencing_token().get()).unwrap();
    let failed = fences.begin_blocking(&mut user, &guard, TxOpts::default()).map(drop).unwrap_err();
    assert!(matches!(&failed, FenceError::Database(_)) && failed.to_string().contains("Lock wait"), "{failed}");
    user.query_drop("INSERT INTO sale VALUES (1)").unwrap();
    other.run("COMMIT").unwrap();
    assert_eq!(other.value::<i32>("SELECT COUNT(*) FROM sale"), 1);
    fences.begin_blocking(&mut user, &guard, TxOpts::default()).unwrap().commit().unwrap();
}
