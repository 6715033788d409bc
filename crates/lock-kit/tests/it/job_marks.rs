//! Marks of slots that are lost before the work begins.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use lock_core::{Holder, LockName, Operation, TokenRange};
use lock_kit::{JobError, JobOutcome, SkipReason, blocking, nonblocking};
use test_support::bounds::wait_for;

use crate::jobs::slot;
use crate::support::Bench;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Who has marked the slot.
fn mark(client: &lock_blocking::Client) -> Option<TokenRange> {
    let name: LockName = format!("nightly@{}", slot(0)).parse().unwrap();
    match client.inspect().unwrap().holder(&name, SECOND).unwrap()?.holder {
        Holder::Leasehold { tokens, .. } => Some(tokens),
        Holder::Foreign => None,
    }
}

/// The outcome of a run that has lost its mark while it waited, such as on a machine that was suspended. Another one marks the slot.
fn waits_for_longer_than_its_mark_lasts<T: Send>(
    bench: &Bench,
    first: impl FnOnce() -> Result<JobOutcome<T>, JobError> + Send,
    runs: &AtomicU32,
) -> Result<JobOutcome<T>, JobError> {
    let (holder, other) = (bench.plain(), bench.plain());
    let holds = holder.mutex("nightly").ttl(HOUR).acquire().unwrap();
    let second = blocking::Kit::job(&other, "nightly").slot(slot(0)).retry_after_crash().wait(HOUR);
    thread::scope(|scope| {
        let first = scope.spawn(first);
        wait_for("the first to wait", || (bench.faults.calls(Operation::Acquire) >= 3).then_some(()));
        let marked = mark(&other);
        assert!(marked.is_some());
        bench.clock.advance(20 * SECOND);
        let second = scope.spawn(move || second.run(|_| runs.fetch_add(1, Ordering::SeqCst)));
        wait_for("the second to mark the slot", || mark(&other).filter(|mark| Some(mark) != marked.as_ref()));
        holds.release().unwrap();
        assert!(second.join().unwrap().unwrap().ran().is_some());
        first.join().unwrap()
    })
}

#[test]
fn a_thread_that_has_lost_its_mark_while_it_waited_does_not_begin() {
    let (bench, runs) = (Bench::new(), AtomicU32::new(0));
    let client = bench.plain();
    let job = blocking::Kit::job(&client, "nightly").slot(slot(0)).retry_after_crash().ttl(10 * SECOND).wait(HOUR);
    let run = || job.run(|_| runs.fetch_add(1, Ordering::SeqCst));
    let outcome = waits_for_longer_than_its_mark_lasts(&bench, run, &runs);
    assert!(matches!(outcome, Err(JobError::Lost(_))), "{outcome:?}");
    assert_eq!(runs.into_inner(), 1);
}

/// A mark that is held for so long would look like one that is kept.
#[test]
fn a_slot_that_waits_for_another_run_has_not_run_whatever_its_ttl() {
    let bench = Bench::new();
    let (holder, one, other) = (bench.plain(), bench.plain(), bench.plain());
    let holds = holder.mutex("nightly").acquire().unwrap();
    let job = |client| blocking::Kit::job(client, "nightly").slot(slot(0)).retry_after_crash().ttl(24 * HOUR);
    let reason = || match job(&other).run(|_| ()).unwrap() {
        JobOutcome::Skipped(skipped) => Some(skipped.reason),
        JobOutcome::Ran(_) => None,
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| job(&one).wait(HOUR).run(|_| ()).unwrap().ran().is_some());
        wait_for("the first to mark the slot", || mark(&other));
        assert_eq!(reason(), Some(SkipReason::SlotTaken));
        holds.release().unwrap();
        assert!(first.join().unwrap());
    });
    assert_eq!(reason(), Some(SkipReason::SlotHasRun));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_lost_its_mark_while_it_waited_does_not_begin() {
    let (bench, runs) = (Bench::new(), AtomicU32::new(0));
    let (client, runtime) = (bench.tokio(), tokio::runtime::Handle::current());
    let job = nonblocking::Kit::job(&client, "nightly").slot(slot(0)).retry_after_crash().ttl(10 * SECOND).wait(HOUR);
    let run = || runtime.block_on(job.run(async |_| runs.fetch_add(1, Ordering::SeqCst)));
    let outcome = tokio::task::block_in_place(|| waits_for_longer_than_its_mark_lasts(&bench, run, &runs));
    assert!(matches!(outcome, Err(JobError::Lost(_))), "{outcome:?}");
    assert_eq!(runs.into_inner(), 1);
}
