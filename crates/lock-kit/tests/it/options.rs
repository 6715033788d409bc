//! Options that every kind takes in the same way.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use lock_core::latch::LatchError;
use lock_core::{AcquireError, OnUnavailable};
use lock_host::{CancelToken, Error, LockOptions};
use lock_kit::blocking::Kit;
use lock_kit::{AcquireAllError, Begun, ElectionError, JobError, nonblocking};
use test_support::bounds::within;

use crate::shelf::{AnyError, Shelf};
use crate::support::Bench;

/// Only by their reason is it known that a wait, a ttl and the rest have arrived.
#[test]
fn every_kind_takes_all_options_at_once() {
    let bench = Bench::new();
    let (client, other) = (bench.plain(), bench.plain());
    let options = LockOptions::default().why("from a file").ttl(Duration::from_secs(60)).wait(Duration::ZERO);
    let why = |name: &str| other.inspect().unwrap().holder(&name.parse().unwrap(), Duration::from_secs(1)).unwrap();
    let held_with = |name: &str| why(name).is_some_and(|entry| entry.holder.to_string().contains("from a file"));
    {
        let both = client.rw_lock("a").options(options.clone());
        let guard = both.write().acquire().unwrap();
        assert!(held_with("a"));
        guard.release().unwrap();
        let _guard = both.read().acquire().unwrap();
        assert!(held_with("a"));
        assert!(matches!(
            other.rw_lock("a").wait(Duration::ZERO).write().acquire(),
            Err(AcquireError::TimedOut { .. })
        ));
    }
    let Ok(Begun::Run(run)) = client.job("job").options(options.clone()).begin() else { panic!("it was skipped") };
    assert!(held_with("job"));
    run.done().unwrap();
    let leadership = client.election("election").options(options.clone()).campaign().unwrap();
    assert!(held_with("election") && leadership.fencing_token() == leadership.term());
    leadership.resign().unwrap();
    let shelf = Shelf::on_the_hosts_clock();
    let flight = client.single_flight("key").options(options);
    let computed: Result<_, AnyError> =
        flight.get_or_compute(&shelf, || Ok(held_with("single-flight:key").then_some(7)));
    assert_eq!(computed.unwrap(), Some(7));
}

/// A schedule calls again, so options that set no wait do not make a job wait forever.
#[test]
fn a_job_with_options_does_not_wait_unless_they_say_so() {
    let bench = Bench::new();
    let _held = bench.plain().mutex("nightly").acquire().unwrap();
    let job = bench.plain().job("nightly").options(LockOptions::default());
    let begun = within("a job that is skipped", move || job.begin().map(drop));
    assert_eq!(begun, Ok(()));
}

#[test]
fn what_means_nothing_to_a_kind_is_refused() {
    let bench = Bench::new();
    let (client, options) = (bench.plain(), LockOptions::default());
    let degrading = client.degrading("a").options(options.clone().on_unavailable(OnUnavailable::Wait));
    let Err(AcquireError::Invalid(invalid)) = degrading.acquire() else { panic!("it was accepted") };
    assert!(invalid.to_string().contains("on_unavailable \"wait\""), "{invalid}");
    let options = options.barging();
    let barging = client.job("nightly").options(options.clone()).begin();
    assert!(matches!(barging, Err(JobError::Acquire(AcquireError::Invalid(_)))));
    let barging = client.degrading("a").options(options.clone()).acquire();
    assert!(matches!(barging, Err(AcquireError::Invalid(_))));
    let barging = client.all(["a", "b"]).options(options.clone()).acquire();
    assert!(matches!(barging, Err(AcquireAllError::Invalid(_))));
    let shelf = Shelf::on_the_hosts_clock();
    let barging: Result<Option<u32>, AnyError> =
        client.single_flight("key").options(options).get_or_compute(&shelf, || Ok(None));
    assert!(barging.unwrap_err().to_string().contains("barging"));
    assert_eq!(shelf.gets(), 0, "it is refused before the cache is asked");
}

/// Each wait ends although the clock of the test stands still.
#[test]
fn a_token_ends_the_wait_of_every_kind() {
    let bench = Bench::new();
    let client = bench.plain();
    let _held =
        ["a", "nightly", "leader", "single-flight:key"].map(|name| bench.plain().mutex(name).acquire().unwrap());
    let forever = Duration::MAX;
    type Wait = Box<dyn FnOnce(&CancelToken) -> bool + Send>;
    let waits: [(&str, Wait); 6] = [
        ("latch", {
            let client = client.clone();
            Box::new(move |token| client.latch("a").cancelled_by(token).wait() == Err(LatchError::Cancelled))
        }),
        ("job", {
            let client = client.clone();
            Box::new(move |token| {
                let begun = client.job("nightly").wait(forever).cancelled_by(token).begin();
                matches!(begun, Err(JobError::Acquire(AcquireError::Cancelled)))
            })
        }),
        ("election", {
            let client = client.clone();
            Box::new(move |token| {
                let election = client.election("leader").cancelled_by(token);
                let led = election.run_while_leader(|_| ControlFlow::Break(()));
                led == Err(ElectionError::Acquire(AcquireError::Cancelled))
            })
        }),
        ("single flight", {
            let client = client.clone();
            Box::new(move |token| {
                let flight = client.single_flight("key").cancelled_by(token);
                let computed: Result<_, AnyError> = flight.get_or_compute(&Shelf::on_the_hosts_clock(), || Ok(Some(7)));
                let error = computed.unwrap_err();
                let error = error.downcast_ref::<Error>();
                matches!(error, Some(Error::Acquire(AcquireError::Cancelled)))
            })
        }),
        ("set", {
            let client = client.clone();
            Box::new(move |token| {
                let error = client.all(["a", "b"]).cancelled_by(token).acquire().map(drop);
                matches!(error, Err(AcquireAllError::At { error: AcquireError::Cancelled, .. }))
            })
        }),
        ("while held", {
            Box::new(move |token| {
                let ran = client.mutex("a").cancelled_by(token).run_while_held(|_| ());
                ran == Err(Error::Acquire(AcquireError::Cancelled))
            })
        }),
    ];
    for (kind, wait) in waits {
        let token = CancelToken::new();
        let waiting = thread::spawn({
            let token = token.clone();
            move || wait(&token)
        });
        thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished(), "{kind}");
        token.cancel();
        assert!(within(kind, || waiting.join().unwrap()), "{kind}");
    }
}

#[test]
fn a_cancelled_adoption_leaves_the_ticket() {
    let bench = Bench::new();
    let client = bench.plain();
    let ticket = client.mutex("a").acquire().unwrap().detach().unwrap();
    let token = CancelToken::new();
    token.cancel();
    let adopted = client.mutex("a").cancelled_by(&token).adopt(&ticket).map(drop);
    assert_eq!(adopted, Err(AcquireError::Cancelled));
    client.mutex("a").adopt(&ticket).unwrap().release().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends_waits_of_tasks_as_well() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (client, token) = (bench.tokio(), CancelToken::new());
    let _held = bench.tokio().mutex("a").acquire().await.unwrap();
    bench.faults.fail_everything(lock_memory::faults::Fault::Refused(lock_core::ErrorKind::Unreachable));
    let degraded = client.degrading("b").try_acquire().await.unwrap();
    bench.faults.heal_everything();
    let (mutex, latch) = (client.mutex("a").cancelled_by(&token), client.latch("a").cancelled_by(&token));
    let degrading = client.degrading("b").cancelled_by(&token);
    let (mutex, latch, degrading) = (
        tokio::spawn(async move { mutex.acquire().await.map(drop) }),
        tokio::spawn(async move { latch.wait().await }),
        tokio::spawn(async move { degrading.acquire().await.map(drop) }),
    );
    tokio::time::sleep(Duration::from_millis(20)).await;
    token.cancel();
    assert_eq!(mutex.await.unwrap(), Err(AcquireError::Cancelled));
    assert_eq!(latch.await.unwrap(), Err(LatchError::Cancelled));
    assert_eq!(degrading.await.unwrap(), Err(AcquireError::Cancelled));
    drop(degraded);
}
