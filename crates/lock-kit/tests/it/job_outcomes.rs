//! What is said of jobs that were skipped, and of those that ran, in both facades.

use std::time::Duration;

use lock_core::inspect::Entry;
use lock_core::{AcquireError, ErrorKind, Operation};
use lock_kit::{JobError, JobOutcome, JobRun, SkipReason, SlotAfter, blocking, nonblocking};
use lock_memory::faults::Fault;

use crate::jobs::{skipped, slot};
use crate::support::{Bench, Store};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[track_caller]
fn ran<T>(outcome: Result<JobOutcome<T>, JobError>) -> JobRun<T> {
    match outcome.unwrap() {
        JobOutcome::Ran(run) => run,
        JobOutcome::Skipped(skipped) => panic!("{skipped}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_runs_is_told_from_one_that_has_run_on_every_store() {
    use nonblocking::Kit;
    for store in Store::each() {
        for retries in [false, true] {
            let (one, two) = (store.tokio().await, store.tokio().await);
            let job = |client: &lock_async::Client| {
                let job = client.job(if retries { "retried" } else { "nightly" }).slot(slot(1)).why("the report");
                if retries { job.retry_after_crash() } else { job }
            };
            let first = job(&one);
            let run = first.run(async |guard| {
                let skipped = skipped(job(&two).run(async |_| ()).await);
                assert_eq!((skipped.reason, skipped.token()), (SkipReason::SlotRuns, Some(guard.fencing_token())));
                assert!(skipped.to_string().ends_with(&format!("(the report), token {}", guard.fencing_token())));
            });
            assert_eq!(ran(run.await).slot, SlotAfter::HasRun);
            let skipped = skipped(job(&two).run(async |_| ()).await);
            assert_eq!((skipped.reason, skipped.token()), (SkipReason::SlotHasRun, None));
            // While another slot runs, too.
            let other = job(&one).slot(slot(0));
            let run = other.run(async |_| crate::jobs::skipped(job(&two).run(async |_| ()).await).reason);
            assert_eq!(ran(run.await).value, SkipReason::SlotHasRun);
        }
    }
}

#[test]
fn threads_are_told_whether_a_slot_runs() {
    use blocking::Kit;
    let bench = Bench::new();
    let (one, two) = (bench.plain(), bench.plain());
    let again = || skipped(two.job("nightly").slot(slot(0)).run(|_| ()));
    let run = one.job("nightly").slot(slot(0)).run(|guard| assert_eq!(again().token(), Some(guard.fencing_token())));
    assert_eq!(ran(run).slot, SlotAfter::HasRun);
    assert_eq!(again().reason, SkipReason::SlotHasRun);
    bench.faults.fail_next(Operation::Inspect, Fault::Refused(ErrorKind::Denied));
    assert_eq!(again().reason, SkipReason::SlotTaken, "it is skipped, whatever else the store says");
}

#[test]
fn while_the_lock_of_a_job_is_kept_nobody_can_tell() {
    use blocking::Kit;
    let bench = Bench::new();
    let client = bench.plain();
    let job = client.job("nightly").slot(slot(0)).at_least(HOUR);
    assert_eq!(ran(job.run(|_| 7)).value, 7);
    assert_eq!(skipped(job.run(|_| ())).reason, SkipReason::SlotTaken);
    bench.clock.advance(HOUR);
    assert_eq!(skipped(job.run(|_| ())).reason, SkipReason::SlotHasRun);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_whose_work_failed_is_run_again_on_every_store() {
    use nonblocking::Kit;
    for store in Store::each() {
        let (one, two) = (store.tokio().await, store.tokio().await);
        for retries in [false, true] {
            let job = |client: &lock_async::Client| {
                let job = client.job(if retries { "retried" } else { "nightly" }).slot(slot(1)).at_least(HOUR);
                if retries { job.retry_after_crash() } else { job }
            };
            let failed = ran(job(&one).try_run(async |_| Err::<(), _>("no mail server")).await);
            assert_eq!((failed.value, failed.slot), (Err("no mail server"), SlotAfter::Free));
            let done = ran(job(&two).try_run(async |_| Ok::<_, ()>(7)).await);
            assert_eq!((done.value, done.slot), (Ok(7), SlotAfter::HasRun));
            assert!(job(&one).try_run(async |_| Ok::<_, ()>(8)).await.unwrap().ran().is_none());
        }
        let client = store.plain();
        let later = tokio::task::spawn_blocking(move || {
            let job = blocking::Kit::job(&client, "hourly").slot(slot(0));
            let failed = ran(job.try_run(|_| Err::<(), _>(()))).slot;
            (failed, ran(job.try_run(|_| Ok::<_, ()>(()))).slot, skipped(job.run(|_| ())).reason)
        });
        assert_eq!(later.await.unwrap(), (SlotAfter::Free, SlotAfter::HasRun, SkipReason::SlotHasRun));
    }
}

/// A job without slots is free at once after work that failed.
#[test]
fn a_failure_is_not_kept_for_at_least() {
    use blocking::Kit;
    let bench = Bench::new();
    let job = bench.plain().job("poll").at_least(HOUR);
    assert_eq!(ran(job.try_run(|_| Err::<(), _>(()))).slot, SlotAfter::None);
    assert_eq!(ran(job.try_run(|_| Ok::<_, ()>(()))).slot, SlotAfter::None);
    assert_eq!(skipped(job.run(|_| ())).reason, SkipReason::Running);
}

#[test]
fn what_the_store_did_not_confirm_is_said() {
    use blocking::Kit;
    let bench = Bench::new();
    let job = bench.plain().job("nightly").slot(slot(0));
    let unmarked = job.clone().retry_after_crash().run(|_| {
        bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Denied));
        7
    });
    let unmarked = ran(unmarked);
    assert_eq!((unmarked.value, unmarked.slot), (7, SlotAfter::Unknown));
    let job = job.slot(slot(1));
    let stuck = job.try_run(|_| {
        bench.faults.fail_next(Operation::Inspect, Fault::Refused(ErrorKind::Denied));
        Err::<(), _>(())
    });
    assert_eq!(ran(stuck).slot, SlotAfter::Unknown);
    assert_eq!(skipped(job.run(|_| ())).reason, SkipReason::SlotHasRun);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_nobody_has_run_are_reported_once_on_every_store() {
    use nonblocking::Kit;
    for store in Store::each() {
        let (client, threads) = (store.tokio().await, store.plain());
        let run = async |hours| ran(client.job("hourly").slot(slot(hours)).every(HOUR).run(async |_| ()).await).missed;
        assert_eq!(ran(client.job("hourly").slot(slot(9)).run(async |_| ()).await).missed, []);
        assert_eq!(run(8).await, []);
        assert_eq!(run(5).await, [slot(7), slot(6)]);
        assert_eq!(run(4).await, [], "they were reported by the run before");
        let later = tokio::task::spawn_blocking(move || {
            let job = |hours| blocking::Kit::job(&threads, "hourly").slot(slot(hours));
            let missed = ran(job(2).every(HOUR).run(|_| ())).missed;
            (missed, ran(job(0).previous([slot(2), slot(1)]).run(|_| ())).missed)
        });
        assert_eq!(later.await.unwrap(), (vec![slot(3)], vec![slot(1)]));
        let new = async |hours, before| {
            ran(client.job("new").slot(slot(hours)).previous(before).run(async |_| ()).await).missed
        };
        assert_eq!(new(5, [slot(7), slot(6)]).await, [], "a new job has missed nothing");
        assert_eq!(new(2, [slot(6), slot(4)]).await, [slot(4)], "it counts from the first slot that ran");
        let threads = store.plain();
        let first = tokio::task::spawn_blocking(move || {
            let job = |hours, before| blocking::Kit::job(&threads, "newer").slot(slot(hours)).previous(before);
            [job(5, [slot(6)]), job(2, [slot(4)])].map(|job| ran(job.run(|_| ())).missed)
        });
        assert_eq!(first.await.unwrap(), [vec![], vec![slot(4)]]);
    }
}

/// The slot that was missed is reported, although more time has passed since the first one than its mark lasts.
#[tokio::test]
async fn a_first_slot_is_remembered_for_as_long_as_the_job_runs() {
    let bench = Bench::new();
    let (tasks, threads) = (bench.tokio(), bench.plain());
    let run = async |days: u32, hours| {
        bench.clock.advance(days * DAY);
        let job = nonblocking::Kit::job(&tasks, "by a task").slot(slot(hours)).previous([slot(hours + 1)]);
        let by_task = ran(job.run(async |_| ()).await).missed;
        let job = blocking::Kit::job(&threads, "by a thread").slot(slot(hours)).previous([slot(hours + 1)]);
        [by_task, ran(job.run(|_| ())).missed]
    };
    let [nothing, missed] = [[vec![], vec![]], [vec![slot(7)], vec![slot(7)]]];
    assert_eq!(run(0, 9).await, nothing, "a new job has missed nothing");
    assert_eq!(run(200, 8).await, nothing, "its first slot is before no missed one");
    assert_eq!(run(200, 6).await, missed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mark_of_a_first_slot_is_set_again_on_every_store_when_half_of_its_time_is_over() {
    for store in Store::each() {
        let (tasks, threads) = (store.tokio().await, store.plain());
        let first = "nightly@1970-01-01T00:00:00Z";
        let left = async || {
            let mark = tasks.inspect().unwrap().holder(&first.parse().unwrap(), 10 * SECOND).await.unwrap().unwrap();
            assert!(mark.holders[0].holder.to_string().ends_with(&format!("(slot {})", slot(9))), "{mark:?}");
            mark.remaining.unwrap()
        };
        let set = tasks.mutex(first).why(format!("slot {}", slot(9))).try_acquire().await.unwrap().unwrap();
        set.release_keeping(182 * DAY).await.unwrap();
        let job = nonblocking::Kit::job(&tasks, "nightly").slot(slot(5)).previous([slot(9), slot(6)]);
        assert_eq!(ran(job.run(async |_| ()).await).missed, [slot(6)]);
        assert!(left().await > 364 * DAY);
        let again = tasks.inspect().unwrap().holder(&first.parse().unwrap(), 10 * SECOND).await.unwrap();
        let by_thread = tokio::task::spawn_blocking(move || {
            ran(blocking::Kit::job(&threads, "nightly").slot(slot(3)).previous([slot(4)]).run(|_| ())).missed
        });
        assert_eq!(by_thread.await.unwrap(), [slot(4)]);
        let tokens = |mark: Option<Entry>| mark.unwrap().holders[0].holder.clone();
        let still = tasks.inspect().unwrap().holder(&first.parse().unwrap(), 10 * SECOND).await.unwrap();
        assert_eq!(tokens(still), tokens(again), "a mark that lasts is left alone");
    }
}

/// As after a reboot, or for a job whose earlier runs did not know the schedule.
#[tokio::test]
async fn the_slot_before_one_that_runs_is_remembered_if_no_first_one_is() {
    let bench = Bench::new();
    let (tasks, threads) = (bench.tokio(), bench.plain());
    let task = |hours| nonblocking::Kit::job(&tasks, "by a task").slot(slot(hours));
    let thread = |hours| blocking::Kit::job(&threads, "by a thread").slot(slot(hours));
    assert_eq!(ran(task(9).run(async |_| ()).await).missed, []);
    assert_eq!(ran(thread(9).run(|_| ())).missed, []);
    for (hours, missed) in [(8, vec![]), (6, vec![slot(7)])] {
        assert_eq!(ran(task(hours).previous([slot(hours + 1)]).run(async |_| ()).await).missed, missed);
        assert_eq!(ran(thread(hours).previous([slot(hours + 1)]).run(|_| ())).missed, missed);
    }
}

#[test]
fn a_report_of_missed_slots_holds_no_run_up() {
    use blocking::Kit;
    let bench = Bench::new();
    let client = bench.plain();
    let job = client.job("hourly").every(HOUR);
    let error = job.run(|_| ()).unwrap_err();
    assert!(matches!(error, JobError::Acquire(AcquireError::Invalid(_))), "{error}");
    bench.faults.fail_next(Operation::Inspect, Fault::Refused(ErrorKind::Denied));
    assert_eq!(ran(job.slot(slot(0)).run(|_| ())).missed, []);
    let minutely =
        |hours| ran(client.job("minutely").slot(slot(hours)).every(Duration::from_secs(60)).run(|_| ())).missed;
    assert_eq!(minutely(3), [], "a new job has missed nothing");
    let missed = minutely(0);
    assert_eq!((missed.len(), missed.is_sorted()), (100, true));
}
