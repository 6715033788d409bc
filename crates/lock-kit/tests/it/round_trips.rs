//! A free set takes one round trip.

use std::fs;
use std::path::Path;
use std::thread;

use lock_core::Operation;
use test_support::bounds::{wait_for, within};

use crate::support::{Bench, Store, until};

const NAMES: [&str; 8] = ["h", "g", "f", "e", "d", "c", "b", "a"];

#[tokio::test]
async fn tasks_send_all_claims_before_the_first_answer() {
    use lock_kit::nonblocking::Kit;

    let bench = Bench::new();
    let client = bench.tokio();
    bench.faults.hold(Operation::Acquire);
    let acquiring = tokio::spawn(async move { client.all(NAMES).acquire().await.unwrap() });
    until("all claims", || bench.faults.calls(Operation::Acquire) == NAMES.len() as u64).await;
    bench.faults.let_go(Operation::Acquire);
    let guard = acquiring.await.unwrap();
    bench.faults.hold(Operation::Release);
    let releasing = tokio::spawn(guard.release());
    until("all releases", || bench.faults.calls(Operation::Release) == NAMES.len() as u64).await;
    bench.faults.let_go(Operation::Release);
    releasing.await.unwrap().unwrap();
}

#[test]
fn threads_send_all_claims_before_the_first_answer() {
    use lock_kit::blocking::Kit;

    let bench = Bench::new();
    let client = bench.plain();
    bench.faults.hold(Operation::Acquire);
    let acquiring = thread::spawn(move || client.all(NAMES).acquire().unwrap().release());
    wait_for("all claims", || (bench.faults.calls(Operation::Acquire) == NAMES.len() as u64).then_some(()));
    bench.faults.let_go(Operation::Acquire);
    within("the release", || acquiring.join().unwrap()).unwrap();
}

#[tokio::test]
async fn one_redis_reads_all_claims_at_once() {
    use lock_kit::nonblocking::Kit;

    let store = Store::redis();
    let Store::Redis(server) = &store else { panic!("it is one") };
    let client = store.tokio().await;
    client.all(NAMES).acquire().await.unwrap().release().await.unwrap(); // loads the scripts
    let mut connection = server.connection();
    let mut reads = || reads(&mut connection);
    // The first request is sent alone, and all others as one, before the first answer. And there is this one.
    let few = 1..=3;
    let before = reads();
    let guard = client.all(NAMES).acquire().await.unwrap();
    let count = reads() - before;
    assert!(few.contains(&count), "{count} reads");
    let before = reads();
    guard.release().await.unwrap();
    let count = reads() - before;
    assert!(few.contains(&count), "{count} reads");
}

/// How often the server has read from a connection.
fn reads(connection: &mut redis::Connection) -> u64 {
    let stats: String = redis::cmd("INFO").arg("stats").query(connection).unwrap();
    let count = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
    count.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn one_file_commits_all_claims_at_once() {
    use lock_kit::nonblocking::Kit;

    let store = Store::sqlite();
    let Store::Sqlite(folder) = &store else { panic!("it is one") };
    let wal = folder.path().join("locks.db-wal");
    let client = store.tokio().await;
    client.all(NAMES).acquire().await.unwrap().release().await.unwrap();
    let before = commits(&wal);
    let _guard = client.all(NAMES).acquire().await.unwrap();
    let commits = commits(&wal) - before;
    // The first claim may have a transaction of its own, and the others share the next one if all arrive in time.
    assert!((1..NAMES.len()).contains(&commits), "{commits} commits");
}

/// How many transactions the write-ahead log has.
///
/// # Source
/// "WAL-mode File Format" of the SQLite manual: the frame that ends a transaction has the size of the database.
fn commits(wal: &Path) -> usize {
    let log = fs::read(wal).unwrap();
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    log[32..].chunks_exact(24 + page).filter(|frame| frame[4..8] != [0; 4]).count()
}
