//! Values that are computed once, in tasks and in threads.

use std::future::pending;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::{LossReason, Operation};
use lock_host::Error;
use lock_kit::{blocking, nonblocking};
use test_support::bounds::{Watchdog, wait_for};

use crate::shelf::{AnyError, Database, Shelf, of_the_lock};
use crate::support::{Bench, Store, until};

const SECOND: Duration = Duration::from_secs(1);
const CALLERS: u32 = 24;

/// How a caller gets the value, given what the database does.
type Caller = fn(&lock_blocking::Client, &Shelf, &dyn Fn() -> Option<u32>) -> Result<Option<u32>, AnyError>;

fn single_flight(
    client: &lock_blocking::Client,
    shelf: &Shelf,
    compute: &dyn Fn() -> Option<u32>,
) -> Result<Option<u32>, AnyError> {
    blocking::Kit::single_flight(client, "user:42").get_or_compute(shelf, || Ok(compute()))
}

/// A twin that does not look again once it has the lock.
fn without_a_second_look(
    client: &lock_blocking::Client,
    shelf: &Shelf,
    compute: &dyn Fn() -> Option<u32>,
) -> Result<Option<u32>, AnyError> {
    if let Some(found) = shelf.find("user:42") {
        return Ok(found.value);
    }
    let guard = client.mutex("single-flight:user:42").acquire()?;
    let value = compute();
    shelf.store("user:42", value, 60 * SECOND, guard.fencing_token());
    guard.release()?;
    Ok(value)
}

/// All look before the first one has computed. How many times was it computed, and how many at the same time?
fn computed(store: &Store, caller: Caller) -> (u32, u32) {
    let _watchdog = Watchdog::over_this_test();
    let (shelf, database) = (Shelf::on_the_hosts_clock(), Database::default());
    let clients = [store.plain(), store.plain()];
    let compute = || {
        let number = database.begin();
        wait_for("all callers to have looked", || (shelf.gets() >= CALLERS).then_some(()));
        database.end();
        Some(number)
    };
    thread::scope(|scope| {
        for (client, _) in clients.iter().cycle().zip(0..CALLERS) {
            scope.spawn(|| assert!(caller(client, &shelf, &compute).unwrap().is_some()));
        }
    });
    (database.calls(), database.at_once())
}

#[test]
fn of_many_threads_one_computes() {
    for store in Store::with_quorum() {
        assert_eq!(computed(&store, single_flight), (1, 1));
    }
}

#[test]
fn without_a_second_look_all_compute() {
    assert_eq!(computed(&Store::memory(), without_a_second_look), (CALLERS, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_tasks_one_computes() {
    use nonblocking::Kit;
    let _watchdog = Watchdog::over_this_test();
    for store in Store::with_quorum() {
        let clients = [store.tokio().await, store.tokio().await];
        let (shelf, database) = (Arc::new(Shelf::on_the_hosts_clock()), Arc::new(Database::default()));
        let tasks = clients.iter().cycle().zip(0..CALLERS).map(|(client, _)| {
            let (client, shelf, database) = (client.clone(), Arc::clone(&shelf), Arc::clone(&database));
            tokio::spawn(async move {
                let compute = async || {
                    let number = database.begin();
                    until("all callers to have looked", || shelf.gets() >= CALLERS).await;
                    database.end();
                    Ok(Some(number))
                };
                client.single_flight("user:42").get_or_compute(&*shelf, compute).await
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            assert_eq!(task.await.unwrap().unwrap(), Some(1));
        }
        assert_eq!((database.calls(), shelf.puts()), (1, 1));
    }
}

/// Between the look of a caller and its lock, another one may have computed.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_was_computed_before_the_lock_was_acquired_is_used() {
    let bench = Bench::new();
    let shelf = Arc::new(Shelf::new(&bench.clock));
    let other = || {
        let (client, shelf) = (bench.plain(), Arc::clone(&shelf));
        move || assert_eq!(single_flight(&client, &shelf, &|| Some(7)).unwrap(), Some(7))
    };
    let fails = || -> Option<u32> { panic!("it was computed twice") };
    shelf.after_next_get(other());
    assert_eq!(single_flight(&bench.plain(), &shelf, &fails).unwrap(), Some(7));

    bench.clock.advance(60 * SECOND);
    let other = other();
    shelf.after_next_get(move || thread::spawn(other).join().unwrap());
    let flight = nonblocking::Kit::single_flight(&bench.tokio(), "user:42");
    assert_eq!(flight.get_or_compute(&*shelf, async || Ok(fails())).await.unwrap(), Some(7));
}

#[tokio::test]
async fn what_is_in_the_cache_asks_nothing_of_the_store() {
    let bench = Bench::new();
    let shelf = Shelf::new(&bench.clock);
    assert_eq!(single_flight(&bench.plain(), &shelf, &|| Some(7)).unwrap(), Some(7));
    let asked = bench.faults.calls(Operation::Acquire);
    assert_eq!(single_flight(&bench.plain(), &shelf, &|| None).unwrap(), Some(7));
    let flight = nonblocking::Kit::single_flight(&bench.tokio(), "user:42");
    assert_eq!(flight.get_or_compute(&shelf, async || Ok(None)).await.unwrap(), Some(7));
    assert_eq!((asked, bench.faults.calls(Operation::Acquire)), (1, 1));
}

/// One whose cache answers late holds up nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn those_who_waited_go_on_together() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let shelf = Arc::new(Shelf::new(&bench.clock));
    let (begun, end) = (tokio::sync::Semaphore::new(0), tokio::sync::Semaphore::new(0));
    let (client, others) = (bench.tokio(), [bench.tokio(), bench.tokio()]);
    let first = async {
        let compute = async || {
            begun.add_permits(1);
            end.acquire().await?.forget();
            Ok(Some(7))
        };
        client.single_flight("user:42").get_or_compute(&*shelf, compute).await.unwrap()
    };
    let then = async {
        begun.acquire().await.unwrap().forget();
        let waiters: Vec<_> = others
            .iter()
            .map(|client| {
                let (client, shelf) = (client.clone(), Arc::clone(&shelf));
                tokio::spawn(async move {
                    let flight = client.single_flight("user:42");
                    flight.get_or_compute(&*shelf, async || Ok(None)).await.unwrap()
                })
            })
            .collect();
        // Each has looked, was refused, and waits as a reader.
        until("both to wait", || bench.faults.calls(Operation::Acquire) >= 5).await;
        let (gate, gated) = (Arc::new(std::sync::Barrier::new(2)), Arc::clone(&shelf));
        let held = Arc::clone(&gate);
        gated.after_next_get(move || _ = held.wait());
        end.add_permits(1);
        until("the other waiter", || waiters.iter().any(tokio::task::JoinHandle::is_finished)).await;
        tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
        for waiter in waiters {
            assert_eq!(waiter.await.unwrap(), Some(7));
        }
    };
    assert_eq!(tokio::join!(first, then).0, Some(7));
}

/// A twin that does not ask whether it still has the lease.
fn put_after_loss(
    client: &lock_blocking::Client,
    shelf: &Shelf,
    compute: &dyn Fn() -> Option<u32>,
) -> Result<Option<u32>, AnyError> {
    let guard = client.mutex("single-flight:user:42").max_hold(10 * SECOND).acquire()?;
    let value = compute();
    shelf.store("user:42", value, 60 * SECOND, guard.fencing_token());
    Ok(guard.release().map(|()| value)?)
}

/// What is cached after a computation that takes longer than its lease, while another caller computed a newer value.
fn cached_after_a_loss(caller: Caller) -> (Option<u32>, bool) {
    let bench = Bench::new();
    let (one, two, shelf) = (bench.plain(), bench.plain(), Shelf::new(&bench.clock));
    let outcome = caller(&one, &shelf, &|| {
        bench.clock.advance(10 * SECOND);
        assert_eq!(single_flight(&two, &shelf, &|| Some(2)).unwrap(), Some(2));
        Some(1)
    });
    (shelf.find("user:42").unwrap().value, outcome.is_ok())
}

#[test]
fn a_lost_lease_puts_nothing() {
    let caller: Caller = |client, shelf, compute| {
        let flight = blocking::Kit::single_flight(client, "user:42").max_hold(10 * SECOND);
        let outcome = flight.get_or_compute(shelf, || Ok(compute()));
        let Error::Lost(lost) = of_the_lock(outcome) else { panic!("another error") };
        assert_eq!(lost.reason, LossReason::MaxHold);
        Err(lost.into())
    };
    assert_eq!(cached_after_a_loss(caller), (Some(2), false));
    assert_eq!(cached_after_a_loss(put_after_loss), (Some(1), false), "the older value");
}

/// A caller whose cache answers late, once it has the lock, computes nothing.
#[test]
fn a_lease_that_is_lost_before_the_computation_computes_nothing() {
    let bench = Bench::new();
    let shelf = Arc::new(Shelf::new(&bench.clock));
    let (again, clock) = (Arc::clone(&shelf), bench.clock.clone());
    shelf.after_next_get(move || again.after_next_get(move || clock.advance(10 * SECOND)));
    let client = bench.plain();
    let flight = blocking::Kit::single_flight(&client, "user:42").max_hold(10 * SECOND);
    let outcome = flight.get_or_compute(&*shelf, || panic!("it was computed"));
    assert!(matches!(of_the_lock(outcome), Error::Lost(_)));
}

#[tokio::test]
async fn a_task_that_has_lost_its_lease_puts_nothing() {
    let bench = Bench::new();
    let (client, shelf) = (bench.tokio(), Shelf::new(&bench.clock));
    let flight = nonblocking::Kit::single_flight(&client, "user:42").max_hold(10 * SECOND);
    let stopped = flight.get_or_compute(&shelf, async || {
        bench.clock.advance(10 * SECOND);
        pending().await
    });
    assert!(matches!(of_the_lock(stopped.await), Error::Lost(_)));
    // It awaits nothing, so it is not stopped.
    let late = flight.get_or_compute(&shelf, async || {
        bench.clock.advance(10 * SECOND);
        Ok(Some(1))
    });
    assert!(matches!(of_the_lock(late.await), Error::Lost(_)));
    assert_eq!(shelf.puts(), 0);
    assert_eq!(flight.get_or_compute(&shelf, async || Ok(Some(2))).await.unwrap(), Some(2));
}

/// The waiters do not all compute at the same time.
#[test]
fn after_a_failure_others_compute_one_by_one() {
    for store in [Store::memory(), Store::quorum()] {
        let _watchdog = Watchdog::over_this_test();
        let (shelf, database) = (Shelf::on_the_hosts_clock(), Database::default());
        let clients = [store.plain(), store.plain()];
        let compute = || {
            let number = database.begin();
            wait_for("all callers to have looked", || (shelf.gets() >= 8).then_some(()));
            database.end();
            if number < 3 { Err("the database is down".into()) } else { Ok(Some(number)) }
        };
        let call = |client| blocking::Kit::single_flight(client, "user:42").get_or_compute(&shelf, compute);
        let outcomes: Vec<Result<Option<u32>, AnyError>> = thread::scope(|scope| {
            let callers = clients.iter().cycle().zip(0..8).map(|(client, _)| scope.spawn(|| call(client)));
            callers.collect::<Vec<_>>().into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        assert_eq!((failed, database.calls(), database.at_once(), shelf.puts()), (2, 3, 1, 1));
        assert!(outcomes.into_iter().flatten().all(|value| value == Some(3)));
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_the_computation_to_others() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (client, shelf) = (bench.tokio(), Shelf::new(&bench.clock));
    let flight = client.single_flight("user:42");
    {
        let mut given_up = Box::pin(flight.get_or_compute(&shelf, async || pending().await));
        let begun = async { until("the computation", || bench.free(&["single-flight:user:42"]).is_empty()).await };
        tokio::select! { _ = &mut given_up => panic!("it ended"), () = begun => {} }
    }
    assert_eq!(flight.get_or_compute(&shelf, async || Ok(Some(2))).await.unwrap(), Some(2));
}
