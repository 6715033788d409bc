//! Jobs, in both facades.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use lock_core::{AcquireError, ErrorKind, LossReason, Operation};
use lock_host::{Event, ManualClock, Observer};
use lock_kit::{JobError, JobOutcome, SkipReason, Skipped, Slot, blocking, nonblocking};
use lock_memory::faults::Fault;

use crate::support::{Bench, Store, until};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The slot of the hour that began so many hours ago.
pub(crate) fn slot(hours: u64) -> Slot {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    Slot::at(SystemTime::UNIX_EPOCH + Duration::from_secs((now / 3600 - hours) * 3600)).unwrap()
}

#[track_caller]
pub(crate) fn skipped<T>(outcome: Result<JobOutcome<T>, JobError>) -> Skipped {
    match outcome.unwrap() {
        JobOutcome::Skipped(skipped) => skipped,
        JobOutcome::Ran(_) => panic!("it ran"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_runs_once_on_every_store_that_can_keep_a_lock() {
    use nonblocking::Kit;
    for store in Store::each() {
        let (one, two, threads) = (store.tokio().await, store.tokio().await, store.plain());
        let job = |client: &lock_async::Client| client.job("nightly").slot(slot(1)).why("the report");
        assert_eq!(job(&one).run(async |guard| guard.name().to_string()).await.unwrap().ran().unwrap(), "nightly");
        for client in [&one, &two] {
            let skipped = skipped(job(client).run(async |_| ()).await);
            assert_eq!((skipped.reason, skipped.slot), (SkipReason::SlotHasRun, Some(slot(1))));
            assert!(skipped.to_string().contains("the report"), "{skipped}");
        }
        let later = tokio::task::spawn_blocking(move || {
            let run = |slot| blocking::Kit::job(&threads, "nightly").slot(slot).run(|_| 7);
            (skipped(run(slot(1))).reason, run(slot(0)).unwrap().ran())
        });
        assert_eq!(later.await.unwrap(), (SkipReason::SlotHasRun, Some(7)));
    }
}

#[test]
fn a_slot_runs_once_in_threads() {
    use blocking::Kit;
    for store in Store::each() {
        let runs = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                let client = store.plain();
                let runs = &runs;
                scope.spawn(move || {
                    for hour in 0..3 {
                        let job = client.job("nightly").slot(slot(hour)).wait(20 * SECOND);
                        _ = job.run(|_| runs.fetch_add(1, Ordering::Relaxed)).unwrap();
                    }
                });
            }
        });
        assert_eq!(runs.into_inner(), 3);
    }
}

#[test]
fn a_quorum_refuses_slots_before_anything_is_sent_and_runs_jobs_without() {
    use blocking::Kit;
    let client = Store::quorum().plain();
    for job in [client.job("nightly").slot(slot(0)), client.job("nightly").at_least(HOUR)] {
        let error = job.run(|_| ()).unwrap_err();
        let JobError::Acquire(AcquireError::Backend(error)) = error else { panic!("{error}") };
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
    assert_eq!(client.job("nightly").run(|_| 7).unwrap().ran(), Some(7));
}

#[tokio::test]
async fn at_least_keeps_the_lock_from_the_begin_of_the_run() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let client = bench.tokio();
    let job = client.job("poll").at_least(HOUR);
    assert_eq!(job.run(async |_| 7).await.unwrap().ran(), Some(7));
    bench.clock.advance(HOUR - 2 * SECOND);
    assert_eq!(skipped(job.run(async |_| ()).await).reason, SkipReason::Running);
    bench.clock.advance(2 * SECOND);
    assert_eq!(job.run(async |_| 8).await.unwrap().ran(), Some(8));
}

#[test]
fn at_least_keeps_the_lock_in_threads() {
    use blocking::Kit;
    let bench = Bench::new();
    let client = bench.plain();
    let job = client.job("poll").at_least(HOUR);
    assert_eq!(job.run(|_| 7).unwrap().ran(), Some(7));
    assert_eq!(skipped(job.run(|_| ())).reason, SkipReason::Running);
    bench.clock.advance(HOUR);
    assert_eq!(job.run(|_| 8).unwrap().ran(), Some(8));
}

/// However a run ends that does not crash: no other one begins before `at_least` is over.
#[tokio::test(flavor = "multi_thread")]
async fn at_least_is_kept_after_a_panic_a_dropped_future_and_a_close() {
    use nonblocking::Kit;
    for store in Store::each() {
        let (client, other) = (store.tokio().await, store.tokio().await);
        let panics = client.job("panics").at_least(HOUR);
        let panicked =
            tokio::spawn(async move { panics.run(async |_| panic!("as planned")).await.map(|_: JobOutcome<()>| ()) });
        assert!(panicked.await.unwrap_err().is_panic());
        let dropped = client.job("dropped").at_least(HOUR);
        let never = dropped.run(async |_| std::future::pending::<()>().await);
        assert!(tokio::time::timeout(SECOND / 10, never).await.is_err());
        let (closed, closing) = (client.job("closed").at_least(HOUR), client.clone());
        let run = closed.run(async |_| {
            closing.close().await;
            std::future::pending::<()>().await;
        });
        assert!(matches!(run.await, Err(JobError::Lost(lost)) if lost.reason == LossReason::Closed));
        for name in ["panics", "dropped", "closed"] {
            tokio::time::sleep(SECOND / 5).await;
            let late = other.job(name).run(async |_| ()).await;
            assert_eq!(skipped(late).reason, SkipReason::Running, "{name}");
        }
    }
}

#[test]
fn at_least_is_kept_after_a_panic_and_a_close_in_threads() {
    use blocking::Kit;
    for store in Store::each() {
        let (client, other) = (store.plain(), store.plain());
        let panics = client.job("panics").at_least(HOUR);
        let panicked = thread::scope(|scope| {
            scope.spawn(|| panics.run(|_| panic!("as planned")).map(|_: JobOutcome<()>| ())).join()
        });
        assert!(panicked.is_err());
        let closed = client.job("closed").at_least(HOUR).run(|_| client.close());
        assert!(matches!(closed, Err(JobError::Lost(lost)) if lost.reason == LossReason::Closed));
        for name in ["panics", "closed"] {
            thread::sleep(SECOND / 5);
            assert_eq!(skipped(other.job(name).run(|_| ())).reason, SkipReason::Running, "{name}");
        }
    }
}

#[tokio::test]
async fn work_is_stopped_when_it_takes_too_long() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (client, clock) = (bench.tokio(), bench.clock.clone());
    let job = client.job("nightly").slot(slot(0)).max_hold(10 * SECOND);
    let outcome = job.run(async |_| {
        clock.advance(10 * SECOND);
        std::future::pending::<()>().await;
    });
    let Err(JobError::Lost(lost)) = outcome.await else { panic!("it was not stopped") };
    assert_eq!(lost.reason, LossReason::MaxHold);
    until("the lock to be free", || bench.free(&["nightly"]) == ["nightly"]).await;
    assert_eq!(skipped(job.run(async |_| ()).await).reason, SkipReason::SlotHasRun);
    assert_eq!(client.job("nightly").slot(slot(1)).run(async |_| 7).await.unwrap().ran(), Some(7));
}

#[test]
fn work_that_takes_too_long_in_a_thread_does_not_count() {
    use blocking::Kit;
    let bench = Bench::new();
    let job = bench.plain().job("nightly").max_hold(10 * SECOND);
    let outcome = job.run(|guard| {
        bench.clock.advance(10 * SECOND);
        guard.lost()
    });
    let Err(JobError::Lost(lost)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(lost.reason, LossReason::MaxHold);
    assert!(lost.to_string().ends_with("`max_hold` allows"), "{lost}");
}

#[test]
fn a_job_is_kept_and_remembered_for_the_longest_time_on_every_store() {
    use blocking::Kit;
    for store in Store::each() {
        let job = store.plain().job("nightly").slot(slot(0)).at_least(Duration::MAX).retain(Duration::MAX);
        assert_eq!(job.run(|_| 7).unwrap().ran(), Some(7));
        assert_eq!(skipped(job.run(|_| ())).slot, Some(slot(0)));
        assert_eq!(skipped(job.slot(slot(1)).run(|_| ())).reason, SkipReason::Running);
    }
}

/// Neither can be stopped: a thread, and a task that awaits nothing.
#[tokio::test]
async fn a_slot_whose_work_took_too_long_is_free_if_it_is_to_be_retried() {
    let bench = Bench::new();
    let (one, two) = (bench.plain(), bench.tokio());
    let overrun = || bench.clock.advance(10 * SECOND);
    let job = blocking::Kit::job(&one, "nightly").slot(slot(0)).max_hold(10 * SECOND).retry_after_crash();
    assert!(matches!(job.run(|_| overrun()), Err(JobError::Lost(_))));
    assert_eq!(job.run(|_| 7).unwrap().ran(), Some(7));
    let job = nonblocking::Kit::job(&two, "hourly").slot(slot(0)).max_hold(10 * SECOND).retry_after_crash();
    assert!(matches!(job.run(async |_| overrun()).await, Err(JobError::Lost(_))));
    assert_eq!(job.run(async |_| 7).await.unwrap().ran(), Some(7));
}

/// Marks of slots take longer than a lease lasts.
struct SlowMarks(ManualClock);

impl Observer for SlowMarks {
    fn observe(&self, event: &Event) {
        if let Event::Released { lock, .. } = event
            && lock.as_str().contains('@')
        {
            self.0.advance(60 * SECOND);
        }
    }
}

#[tokio::test]
async fn work_is_not_begun_if_the_lock_was_lost_while_its_slot_was_marked() {
    let bench = Bench::new();
    let (clock, observer) = (Arc::new(bench.clock.clone()), Arc::new(SlowMarks(bench.clock.clone())));
    let builder = lock_blocking::Client::builder(Arc::new(bench.store.blocking()));
    let one = builder.clock(clock.clone()).observer(observer.clone()).build().unwrap();
    let job = blocking::Kit::job(&one, "nightly").slot(slot(0));
    let outcome = job.run(|_| panic!("the work was begun"));
    assert!(matches!(outcome, Err(JobError::Lost(_))), "{outcome:?}");
    let builder = lock_async::Client::builder(Arc::new(bench.store.nonblocking()));
    let two = builder.clock(clock).observer(observer).build().unwrap();
    let job = nonblocking::Kit::job(&two, "hourly").slot(slot(0));
    let outcome = job.run(async |_| panic!("the work was begun")).await;
    assert!(matches!(outcome, Err(JobError::Lost(_))), "{outcome:?}");
}

/// By default, a slot whose run did not end counts as run.
#[tokio::test]
async fn a_run_that_crashes_is_repeated_only_if_the_job_says_so() {
    use nonblocking::Kit;
    for retries in [false, true] {
        let bench = Bench::new();
        let (one, two) = (bench.tokio(), bench.tokio());
        let job = |client: &lock_async::Client| {
            let job = client.job("nightly").slot(slot(0));
            if retries { job.retry_after_crash() } else { job }
        };
        {
            let crash = job(&one);
            let mut crash = Box::pin(crash.run(async |_| std::future::pending::<()>().await));
            let begun = async { until("the work to begin", || bench.free(&["nightly"]).is_empty()).await };
            tokio::select! { _ = &mut crash => panic!("it ended"), () = begun => {} }
            assert_eq!(skipped(job(&two).run(async |_| ()).await).reason, SkipReason::SlotRuns);
        }
        until("the lock to be free", || bench.free(&["nightly"]) == ["nightly"]).await;
        if retries {
            let mark = format!("nightly@{}", slot(0));
            until("the mark to be free", || !bench.free(&[&mark]).is_empty()).await;
            assert_eq!(job(&two).run(async |_| 7).await.unwrap().ran(), Some(7));
        }
        assert_eq!(skipped(job(&two).run(async |_| ()).await).reason, SkipReason::SlotHasRun);
    }
}

#[test]
fn a_thread_that_panics_frees_its_slot_only_if_the_job_says_so() {
    use blocking::Kit;
    for retries in [false, true] {
        let bench = Bench::new();
        let client = bench.plain();
        let job = client.job("nightly").slot(slot(0));
        let job = if retries { job.retry_after_crash() } else { job };
        let crash = thread::spawn({
            let job = job.clone();
            move || job.run(|_| panic!("as it should")).map(drop)
        });
        assert!(crash.join().is_err());
        assert_eq!(job.run(|_| 7).unwrap().ran(), retries.then_some(7));
        assert_eq!(skipped(job.run(|_| ())).reason, SkipReason::SlotHasRun);
    }
}

#[test]
fn without_its_mark_the_work_is_not_begun() {
    use blocking::Kit;
    let bench = Bench::new();
    let job = bench.plain().job("nightly").slot(slot(0));
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Denied));
    let outcome = job.run(|_| panic!("the work was begun"));
    let Err(error @ JobError::NotMarked(_)) = outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("the work was not begun"), "{error}");
    assert_eq!(bench.free(&["nightly"]), ["nightly"]);
}

#[test]
fn a_job_that_runs_is_not_run_and_its_slot_stays_free() {
    use blocking::Kit;
    let bench = Bench::new();
    let (one, two) = (bench.plain(), bench.plain());
    let outcome = one.job("nightly").slot(slot(1)).run(|_| {
        let skipped = skipped(two.job("nightly").slot(slot(0)).run(|_| ()));
        assert_eq!((skipped.reason, skipped.holder.is_some()), (SkipReason::Running, true));
    });
    assert_eq!(outcome.unwrap().ran(), Some(()));
    assert_eq!(two.job("nightly").slot(slot(0)).run(|_| 7).unwrap().ran(), Some(7));
}

#[tokio::test]
async fn a_job_that_runs_leaves_the_other_slot_free_for_tasks() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (one, two) = (bench.tokio(), bench.tokio());
    let (runs, job) = (one.job("nightly").slot(slot(1)), two.job("nightly").slot(slot(0)));
    let outcome = runs.run(async |_| {
        let skipped = skipped(job.run(async |_| ()).await);
        assert_eq!((skipped.reason, skipped.holder.is_some()), (SkipReason::Running, true));
    });
    assert_eq!(outcome.await.unwrap().ran(), Some(()));
    assert_eq!(job.run(async |_| 7).await.unwrap().ran(), Some(7));
}

/// By then, the slot is too old to be run.
#[test]
fn a_slot_is_forgotten_a_day_after_it_is_too_old() {
    use blocking::Kit;
    let bench = Bench::new();
    let client = bench.plain();
    let job = client.job("nightly").slot(slot(0)).retain(DAY);
    assert_eq!(job.run(|_| 7).unwrap().ran(), Some(7));
    bench.clock.advance(2 * DAY - SECOND);
    assert_eq!(skipped(job.run(|_| ())).reason, SkipReason::SlotTaken);
    bench.clock.advance(SECOND);
    assert_eq!(job.run(|_| 8).unwrap().ran(), Some(8));

    let old = client.job("nightly").slot(slot(25)).retain(DAY).run(|_| ());
    let Err(JobError::Acquire(AcquireError::Invalid(invalid))) = old else { panic!("{old:?}") };
    assert!(invalid.to_string().contains("it is older than 1day"), "{invalid}");
    let ahead = Slot::at(slot(0).time() + 2 * DAY).unwrap();
    let early = client.job("nightly").slot(ahead).retain(DAY);
    assert_eq!(early.run(|_| 9).unwrap().ran(), Some(9));
    bench.clock.advance(2 * DAY + SECOND);
    assert_eq!(skipped(early.run(|_| ())).reason, SkipReason::SlotHasRun);
}
