//! For how long computed values are kept and used, and what is refused.

use std::time::Duration;

use lock_core::{AcquireError, ErrorKind, Operation};
use lock_host::Error;
use lock_kit::{blocking, nonblocking};
use lock_memory::faults::Fault;

use crate::shelf::{Shelf, of_the_lock};
use crate::support::{Bench, Store};

const SECOND: Duration = Duration::from_secs(1);

/// The store that failed is asked again where there is no value to use, and not otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_locks_that_is_away_is_no_error_at_once() {
    let bench = Bench::new();
    let shelf = Shelf::new(&bench.clock);
    let (one, two) = (bench.plain(), bench.tokio());
    let threads = blocking::Kit::single_flight(&one, "user:42").stale_for(30 * SECOND).jitter_percent(0);
    let tasks = nonblocking::Kit::single_flight(&two, "user:42").stale_for(30 * SECOND).jitter_percent(0);
    let away = || bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    away();
    assert_eq!(threads.get_or_compute(&shelf, || Ok(Some(1))).unwrap(), Some(1));
    bench.clock.advance(60 * SECOND);
    away();
    assert_eq!(threads.get_or_compute(&shelf, || panic!("it was computed")).unwrap(), Some(1));
    away();
    assert_eq!(tasks.get_or_compute(&shelf, async || panic!("it was computed")).await.unwrap(), Some(1));
    bench.clock.advance(90 * SECOND);
    away();
    assert_eq!(tasks.get_or_compute(&shelf, async || Ok(Some(2))).await.unwrap(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_value_is_used_while_it_is_computed() {
    let bench = Bench::new();
    let shelf = Shelf::new(&bench.clock);
    let (one, two) = (bench.plain(), bench.tokio());
    let threads = blocking::Kit::single_flight(&one, "user:42").stale_for(30 * SECOND).jitter_percent(0);
    let tasks = nonblocking::Kit::single_flight(&two, "user:42").stale_for(30 * SECOND).jitter_percent(0);
    let fails = || panic!("it was computed");
    assert_eq!(threads.get_or_compute(&shelf, || Ok(Some(1))).unwrap(), Some(1));
    bench.clock.advance(59 * SECOND);
    assert_eq!(tasks.get_or_compute(&shelf, async || fails()).await.unwrap(), Some(1));
    bench.clock.advance(SECOND);
    let renewed = tasks.get_or_compute(&shelf, async || {
        assert_eq!(threads.get_or_compute(&shelf, &fails).unwrap(), Some(1));
        assert_eq!(tasks.get_or_compute(&shelf, async || fails()).await?, Some(1));
        Ok(Some(2))
    });
    assert_eq!(renewed.await.unwrap(), Some(2));
    assert_eq!(threads.get_or_compute(&shelf, fails).unwrap(), Some(2));
    bench.clock.advance(90 * SECOND);
    assert_eq!(threads.get_or_compute(&shelf, || Ok(Some(3))).unwrap(), Some(3), "too old to be used");
}

#[tokio::test]
async fn what_does_not_exist_is_cached_for_a_time_of_its_own() {
    let bench = Bench::new();
    let shelf = Shelf::new(&bench.clock);
    let (one, two) = (bench.plain(), bench.tokio());
    let threads = blocking::Kit::single_flight(&one, "user:42").absent_ttl(5 * SECOND).jitter_percent(0);
    let tasks = nonblocking::Kit::single_flight(&two, "user:42").absent_ttl(5 * SECOND).jitter_percent(0);
    assert_eq!(threads.get_or_compute(&shelf, || Ok(None)).unwrap(), None);
    bench.clock.advance(4 * SECOND);
    assert_eq!(tasks.get_or_compute(&shelf, async || Ok(Some(1))).await.unwrap(), None);
    bench.clock.advance(SECOND);
    assert_eq!(tasks.get_or_compute(&shelf, async || Ok(None)).await.unwrap(), None);
    bench.clock.advance(5 * SECOND);
    assert_eq!(threads.get_or_compute(&shelf, || Ok(Some(1))).unwrap(), Some(1));
    bench.clock.advance(59 * SECOND);
    assert_eq!(threads.get_or_compute(&shelf, || Ok(None)).unwrap(), Some(1));
    assert_eq!(shelf.puts(), 3);
}

#[tokio::test]
async fn values_that_are_cached_together_expire_apart_and_their_tokens_rise() {
    let bench = Bench::new();
    let shelf = Shelf::new(&bench.clock);
    let (one, two) = (bench.plain(), bench.tokio());
    for round in 0..20 {
        bench.clock.advance(60 * SECOND);
        let threads = blocking::Kit::single_flight(&one, "a");
        assert_eq!(threads.get_or_compute(&shelf, || Ok(Some(round))).unwrap(), Some(round));
        bench.clock.advance(60 * SECOND);
        let tasks = nonblocking::Kit::single_flight(&two, "a");
        assert_eq!(tasks.get_or_compute(&shelf, async || Ok(Some(round))).await.unwrap(), Some(round));
    }
    let puts = shelf.puts.lock().unwrap();
    assert!(puts.is_sorted_by(|one, two| one.1 < two.1), "{puts:?}");
    for facade in [0, 1].map(|first| puts.iter().skip(first).step_by(2).collect::<Vec<_>>()) {
        assert!(facade.iter().all(|(ttl, _)| (54 * SECOND..=60 * SECOND).contains(ttl)), "{facade:?}");
        assert!(facade.windows(2).any(|pair| pair[0].0 != pair[1].0), "{facade:?}");
    }
}

#[tokio::test]
async fn bad_options_are_refused_before_the_cache_is_asked() {
    let bench = Bench::new();
    let (client, tokio, shelf) = (bench.plain(), bench.tokio(), Shelf::new(&bench.clock));
    let threads = |key: &str| blocking::Kit::single_flight(&client, key);
    let tasks = nonblocking::Kit::single_flight(&tokio, "a").value_ttl(Duration::ZERO);
    let refused = [
        threads("a").value_ttl(Duration::ZERO).get_or_compute(&shelf, || Ok(None)),
        threads("a").absent_ttl(Duration::ZERO).get_or_compute(&shelf, || Ok(None)),
        threads("a").jitter_percent(101).get_or_compute(&shelf, || Ok(None)),
        threads("a").ttl(Duration::ZERO).get_or_compute(&shelf, || Ok(None)),
        threads("a").why("two\nlines").get_or_compute(&shelf, || Ok(None)),
        threads(&"a".repeat(1000)).get_or_compute(&shelf, || Ok(None)),
        tasks.get_or_compute(&shelf, async || Ok(None)).await,
    ];
    for outcome in refused {
        let error = of_the_lock(outcome);
        assert!(matches!(error, Error::Acquire(AcquireError::Invalid(_))), "{error}");
    }
    assert_eq!((shelf.gets(), bench.faults.calls(Operation::Acquire)), (0, 0));
}

#[tokio::test]
async fn a_wait_for_the_value_is_over_in_time() {
    for store in [Store::memory(), Store::quorum()] {
        let (one, two) = (store.plain(), store.tokio().await);
        let shelf = Shelf::on_the_hosts_clock();
        let _guard = one.mutex("single-flight:user:42").acquire().unwrap();
        let wait = Duration::from_millis(50);
        let threads = blocking::Kit::single_flight(&one, "user:42").wait(wait);
        let tasks = nonblocking::Kit::single_flight(&two, "user:42").wait(wait);
        let timed_out =
            [threads.get_or_compute(&shelf, || Ok(None)), tasks.get_or_compute(&shelf, async || Ok(None)).await];
        for outcome in timed_out {
            let Error::Acquire(AcquireError::TimedOut { waited, .. }) = of_the_lock(outcome) else {
                panic!("another error")
            };
            assert!(waited >= wait, "{waited:?}");
        }
    }
}

/// Of the callers of a client, one finds out that the store is away, and one asks again two seconds later.
#[tokio::test(flavor = "multi_thread")]
async fn one_finding_serves_all_who_have_a_stale_value() {
    for threads in [false, true] {
        let bench = Bench::new();
        let shelf = Shelf::new(&bench.clock);
        let (one, two) = (bench.plain(), bench.tokio());
        let value = async |key: &str, computed: u32| {
            let flight = blocking::Kit::single_flight(&one, key).stale_for(30 * SECOND).jitter_percent(0);
            let tasks = nonblocking::Kit::single_flight(&two, key).stale_for(30 * SECOND).jitter_percent(0);
            if threads {
                flight.get_or_compute(&shelf, || Ok(Some(computed))).unwrap()
            } else {
                tasks.get_or_compute(&shelf, async || Ok(Some(computed))).await.unwrap()
            }
        };
        let keys = ["user:1", "user:2", "user:2", "user:3"];
        for key in keys {
            assert_eq!(value(key, 1).await, Some(1));
        }
        bench.clock.advance(60 * SECOND);
        bench.faults.fail_all(Operation::Acquire, Fault::Refused(ErrorKind::Timeout));
        for round in 1..=3 {
            let calls = bench.faults.calls(Operation::Acquire);
            for key in keys {
                assert_eq!(value(key, 2).await, Some(1));
            }
            assert_eq!(bench.faults.calls(Operation::Acquire), calls + 1, "threads: {threads}, round {round}");
            bench.clock.advance(2 * SECOND);
        }
        bench.faults.heal(Operation::Acquire);
        for key in keys {
            assert_eq!(value(key, 3).await, Some(3));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_hangs_costs_those_who_have_a_stale_value_little_time() {
    let store = Store::redis();
    let (one, two) = (store.plain(), store.tokio().await);
    let shelf = Shelf::on_the_hosts_clock();
    let threads = blocking::Kit::single_flight(&one, "a").value_ttl(SECOND / 1000).stale_for(60 * SECOND);
    let tasks = nonblocking::Kit::single_flight(&two, "a").value_ttl(SECOND / 1000).stale_for(60 * SECOND);
    assert_eq!(threads.get_or_compute(&shelf, || Ok(Some(1))).unwrap(), Some(1));
    tokio::time::sleep(SECOND / 50).await;
    let Store::Redis(server) = &store else { panic!("another store") };
    server.stop();
    let began = std::time::Instant::now();
    for _ in 0..15 {
        assert_eq!(tasks.get_or_compute(&shelf, async || panic!("it was computed")).await.unwrap(), Some(1));
        assert_eq!(threads.get_or_compute(&shelf, || panic!("it was computed")).unwrap(), Some(1));
    }
    assert!(began.elapsed() < 15 * SECOND, "{:?}", began.elapsed());
    server.resume();
}
