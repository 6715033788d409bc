//! Workers as processes, with a real Redis.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use redis::Commands;
use test_support::bounds::{Watchdog, output_of, wait_for};
use test_support::{RedisServer, signals};

const TENANTS: [&str; 3] = ["acme", "globex", "initech"];
const RECORDS: usize = 25;

fn offer_records(redis: &RedisServer) {
    let mut redis = redis.connection();
    for tenant in TENANTS {
        let records: Vec<_> = (0..RECORDS).map(|number| format!("{tenant} {number}")).collect();
        let _: usize = redis.rpush(format!("source:{tenant}"), records).unwrap();
    }
}

/// A running worker.
struct Worker(Option<Child>);

impl Worker {
    fn start(redis: &RedisServer, fetch_takes_ms: u32) -> Self {
        signals::default_in_children();
        let process = Command::new(env!("CARGO_BIN_EXE_threads-r2d2"))
            .args(TENANTS)
            .envs([("REDIS_URL", redis.url()), ("FETCH_TAKES_MS", fetch_takes_ms.to_string())])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        Self(Some(process.unwrap()))
    }

    fn process(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// Asks it to stop, and returns what it has reported.
    fn stopped(mut self) -> String {
        let process = self.0.take().unwrap();
        signals::terminate(process.id());
        let output = output_of(process, "the worker that was asked to stop");
        let reported = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{:?}: {reported}", output.status);
        reported
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(mut process) = self.0.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

/// How many records of a tenant were imported.
fn position(redis: &mut redis::Connection, tenant: &str) -> usize {
    redis.hget::<_, _, Option<usize>>(format!("tenant:{tenant}"), "position").unwrap().unwrap_or(0)
}

fn wait_until_all_is_imported(redis: &RedisServer) {
    let mut connection = redis.connection();
    for tenant in TENANTS {
        wait_for("all records of a tenant", || (position(&mut connection, tenant) == RECORDS).then_some(()));
        let mut imported: BTreeMap<String, String> = connection.hgetall(format!("tenant:{tenant}")).unwrap();
        imported.remove("position");
        let offered = (0..RECORDS).map(|number| (number.to_string(), format!("{tenant} {number}"))).collect();
        assert_eq!(imported, offered);
    }
}

/// How often the source was asked for a record of a tenant.
fn fetched(redis: &RedisServer, tenant: &str) -> usize {
    redis.connection().get(format!("source:{tenant}:fetched")).unwrap()
}

#[test]
fn two_workers_fetch_each_record_once_although_one_of_them_stops() {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    offer_records(&redis);
    let workers = [Worker::start(&redis, 100), Worker::start(&redis, 100)];
    wait_for("the import to begin", || (position(&mut redis.connection(), "acme") > 2).then_some(()));
    let [one, two] = workers;
    assert_eq!(one.stopped(), "");
    let locks = leasehold::blocking::connect(&redis.url()).unwrap();
    wait_until_all_is_imported(&redis);
    assert_eq!(two.stopped(), "");
    for tenant in TENANTS {
        assert_eq!(fetched(&redis, tenant), RECORDS, "{tenant}");
        assert!(locks.mutex(format!("import:{tenant}")).try_acquire().unwrap().is_some(), "{tenant}");
    }
}

#[test]
fn a_worker_that_is_suspended_past_its_leases_writes_nothing_when_it_resumes() {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    offer_records(&redis);
    let mut suspended = Worker::start(&redis, 1_000);
    wait_for("the import to begin", || (position(&mut redis.connection(), "acme") > 0).then_some(()));
    signals::stop(suspended.process().id());
    let other = Worker::start(&redis, 0);
    wait_until_all_is_imported(&redis);
    signals::resume(suspended.process().id());

    // Kept open until the worker has stopped: its other threads report too.
    let mut reported = BufReader::new(suspended.process().stderr.take().unwrap()).lines();
    let first = reported.next().unwrap().unwrap();
    // The last two are of a request that was in flight when it was suspended.
    let reasons = ["lost the lock", "comes too late", "Interrupted system call", "did not answer"];
    assert!(reasons.iter().any(|reason| first.contains(reason)), "{first}");
    wait_until_all_is_imported(&redis);
    suspended.stopped();
    other.stopped();
    for tenant in TENANTS {
        assert!(fetched(&redis, tenant) <= RECORDS + 1, "{tenant}: only what it was fetching when it was suspended");
    }
}

#[test]
fn a_request_without_an_answer_is_reported_as_such() {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    offer_records(&redis);
    let mut worker = Worker::start(&redis, 200);
    wait_for("the import to begin", || (position(&mut redis.connection(), "acme") > 0).then_some(()));
    redis.stop();
    // Kept open until the worker has stopped: its other threads report too.
    let mut reported = BufReader::new(worker.process().stderr.take().unwrap()).lines();
    let first = reported.next().unwrap().unwrap();
    redis.resume();
    assert!(first.ends_with("Redis did not answer within 2s") && !first.contains("os error"), "{first}");
    worker.stopped();
}
