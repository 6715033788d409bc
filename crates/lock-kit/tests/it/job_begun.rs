//! Runs that their callers end, in both facades.

use std::time::Duration;

use lock_core::{AcquireError, LossReason};
use lock_kit::{Begun, JobError, RunEnd, SkipReason, SlotAfter, blocking, nonblocking};

use crate::jobs::slot;
use crate::support::{Bench, Store};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

#[track_caller]
fn begun(job: &blocking::Job) -> blocking::Run {
    match job.begin().unwrap() {
        Begun::Run(run) => run,
        Begun::Skipped(skipped) => panic!("{skipped}"),
    }
}

#[track_caller]
fn skipped<R>(begun: Result<Begun<R>, JobError>) -> SkipReason {
    match begun.unwrap() {
        Begun::Skipped(skipped) => skipped.reason,
        Begun::Run(_) => panic!("it runs"),
    }
}

#[track_caller]
fn slot_after(end: Result<RunEnd, JobError>) -> SlotAfter {
    let end = end.unwrap();
    assert_eq!(end.unconfirmed, None);
    end.slot
}

#[test]
fn a_run_ends_as_its_caller_says_on_every_store() {
    use blocking::Kit;
    for store in Store::each() {
        let client = store.plain();
        for job in [client.job("nightly").slot(slot(0)), client.job("retried").slot(slot(0)).retry_after_crash()] {
            let run = begun(&job);
            assert!(matches!(skipped(job.begin()), SkipReason::SlotRuns | SkipReason::SlotTaken));
            assert_eq!(slot_after(run.failed()), SlotAfter::Free);
            let run = begun(&job);
            assert_eq!((run.missed(), run.guard().check()), (vec![], Ok(())));
            assert_eq!(slot_after(run.done()), SlotAfter::HasRun);
            assert_eq!(skipped(job.begin()), SkipReason::SlotHasRun);
        }
    }
}

/// A run that nobody ends is a crash.
#[test]
fn a_run_that_is_dropped_counts_as_the_job_says() {
    use blocking::Kit;
    let bench = Bench::new();
    let client = bench.plain();
    let (once, again) = (client.job("once").slot(slot(0)), client.job("again").slot(slot(0)).retry_after_crash());
    drop(begun(&once));
    begun(&once.clone().slot(slot(1))).release().unwrap();
    assert_eq!(skipped(once.begin()), SkipReason::SlotHasRun);
    drop(begun(&again));
    begun(&again).release().unwrap();
    assert_eq!(slot_after(begun(&again).done()), SlotAfter::HasRun);
}

#[test]
fn missed_slots_are_counted_when_the_caller_asks() {
    use blocking::Kit;
    let bench = Bench::new();
    let client = bench.plain();
    let job = |hours| client.job("hourly").slot(slot(hours)).every(HOUR);
    assert_eq!(begun(&job(5)).missed(), []);
    assert_eq!(begun(&job(2)).missed(), [slot(4), slot(3)]);
}

/// The time of a run is that of the client's clock.
/// Code that ends a run by hand can return one error.
#[tokio::test]
async fn a_run_is_begun_looked_at_and_ended_with_one_error() {
    use nonblocking::Kit;
    async fn twice(client: &lock_async::Client) -> Result<(), JobError> {
        for job in ["one", "two"] {
            let Begun::Run(run) = client.job(job).begin().await? else { panic!("it was skipped") };
            run.guard().check()?;
            run.guard().verify().await?;
            if job == "one" { _ = run.done().await? } else { run.release().await? }
        }
        Ok(())
    }
    let bench = Bench::new();
    assert_eq!(twice(&bench.tokio()).await, Ok(()));
}

#[tokio::test]
async fn a_run_is_lost_and_kept_by_the_clients_clock() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let client = bench.tokio();
    let job = client.job("poll").at_least(SECOND * 10).max_hold(SECOND * 20);
    let Begun::Run(run) = job.begin().await.unwrap() else { panic!("it was skipped") };
    assert_eq!(slot_after(run.done().await), SlotAfter::None);
    bench.clock.advance(SECOND * 8);
    assert_eq!(skipped(job.begin().await), SkipReason::Running);
    bench.clock.advance(SECOND * 2);
    let Begun::Run(run) = job.begin().await.unwrap() else { panic!("it was skipped") };
    bench.clock.advance(SECOND * 20);
    let Err(JobError::Lost(lost)) = run.done().await else { panic!("it counts") };
    assert_eq!(lost.reason, LossReason::MaxHold);
    let Begun::Run(run) = job.begin().await.unwrap() else { panic!("it was skipped") };
    assert_eq!(slot_after(run.failed().await), SlotAfter::None);
    let Begun::Run(run) = job.begin().await.unwrap() else { panic!("a failure is not kept") };
    run.release().await.unwrap();
    client.close().await;
    assert!(matches!(job.begin().await, Err(JobError::Acquire(AcquireError::Closed))));
}
