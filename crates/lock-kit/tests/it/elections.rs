//! Elections, in both facades.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use lock_blocking::CancelToken;
use lock_core::{AcquireError, ErrorKind, Operation};
use lock_host::{Clock, ManualClock};
use lock_kit::{ElectionError, LeadershipLost, ObserveError, blocking, nonblocking};
use lock_memory::faults::Fault;

use test_support::bounds::wait_for;

use crate::support::{Bench, PATIENCE, Store, until};

const SECOND: Duration = Duration::from_secs(1);
const AWAY: Fault = Fault::Refused(ErrorKind::Unreachable);

/// A client of the bench's store that has no faults.
fn healthy(bench: &Bench) -> lock_blocking::Client {
    let builder = lock_blocking::Client::builder(Arc::new(bench.store.blocking()));
    builder.clock(Arc::new(bench.clock.clone())).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_leads_and_the_next_one_has_a_higher_term() {
    use nonblocking::Kit;
    for store in Store::with_quorum() {
        let (one, two) = (store.tokio().await, store.tokio().await);
        let candidate = two.election("scheduler").wait(PATIENCE);
        let first = one.election("scheduler").campaign().await.unwrap();
        assert_eq!((first.name().as_str(), first.check()), ("scheduler", Ok(())));
        let loser = two.election("scheduler").wait(SECOND / 10).campaign().await;
        assert!(matches!(loser, Err(AcquireError::TimedOut { .. })), "{loser:?}");
        let (next, resigned) = tokio::join!(candidate.campaign(), async {
            tokio::time::sleep(SECOND / 20).await;
            let term = first.term();
            first.resign().await.map(|()| term)
        });
        assert!(next.unwrap().term() > resigned.unwrap());
    }
}

#[test]
fn one_of_several_threads_leads_and_the_next_one_has_a_higher_term() {
    use blocking::Kit;
    for store in Store::with_quorum() {
        let (one, two) = (store.plain(), store.plain());
        let first = one.election("scheduler").campaign().unwrap();
        let loser = two.election("scheduler").wait(SECOND / 10).campaign();
        assert!(matches!(loser, Err(AcquireError::TimedOut { .. })), "{loser:?}");
        let next = thread::spawn(move || two.election("scheduler").wait(PATIENCE).campaign().unwrap().term());
        let term = first.term();
        assert_eq!((first.lost_within(SECOND / 20), first.resign()), (None, Ok(())));
        assert!(next.join().unwrap() > term);
    }
}

/// Work in steps of five seconds, between which it checks whether it still leads, while its lease is not renewed. Returns
/// whether somebody else was granted the lock while it worked.
fn overlaps(bench: &Bench, leads: impl Fn() -> bool) -> bool {
    bench.faults.fail_all(Operation::Renew, AWAY);
    let other = healthy(bench);
    let mut overlaps = false;
    while leads() {
        for _ in 0..5 {
            bench.clock.advance(SECOND);
            overlaps |= other.mutex("scheduler").try_acquire().unwrap().is_some();
        }
    }
    overlaps
}

#[test]
fn a_leader_steps_down_in_time_and_one_that_only_looks_at_its_lease_does_not() {
    use blocking::Kit;
    let bench = Bench::new();
    let client = bench.plain();
    let leadership = client.election("scheduler").campaign().unwrap();
    assert!(!overlaps(&bench, || leadership.check().is_ok()));
    let lost = leadership.lost();
    assert!(matches!(lost, LeadershipLost::NotRenewed { .. }), "{lost}");

    let bench = Bench::new();
    let client = bench.plain();
    let twin = client.mutex("scheduler").acquire().unwrap();
    assert!(overlaps(&bench, || twin.check().is_ok()), "nothing shows that stepping down is needed");
}

/// Says when it was dropped, which is when the work was stopped.
struct Stopped(ManualClock, Arc<AtomicU32>);

impl Drop for Stopped {
    fn drop(&mut self) {
        let seconds = self.0.now().as_nanos() / 1_000_000_000;
        self.1.store(u32::try_from(seconds).unwrap(), Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_is_stopped_before_its_lease_can_end_and_goes_on_in_a_later_term() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (election, begun, stopped) =
        (bench.tokio().election("scheduler"), bench.clock.now(), Arc::new(AtomicU32::new(0)));
    let (clock, stopped_at, terms) = (bench.clock.clone(), Arc::clone(&stopped), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&terms);
    // Spawned, as a service does.
    let led = tokio::spawn(async move {
        let work = |leadership: Arc<nonblocking::Leadership>| {
            let stopped = Stopped(clock.clone(), Arc::clone(&stopped_at));
            let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if is_first {
                    std::future::pending::<()>().await;
                }
                std::mem::forget(stopped);
                ControlFlow::Break(leadership.term())
            }
        };
        election.run_while_leader(work).await
    });
    until("the first term", || terms.load(Ordering::SeqCst) == 1).await;
    bench.faults.fail_all(Operation::Renew, AWAY);
    bench.clock.advance(24 * SECOND);
    until("the work to be stopped", || stopped.load(Ordering::SeqCst) != 0).await;
    let after = u64::from(stopped.load(Ordering::SeqCst)) - begun.as_nanos() / 1_000_000_000;
    assert_eq!(after, 24, "seconds of a lease of 30");
    bench.faults.heal_everything();
    assert!(led.await.unwrap().is_ok());
    assert_eq!(terms.load(Ordering::SeqCst), 2);
    assert_eq!(bench.free(&["scheduler"]), ["scheduler"], "it has resigned");
}

#[tokio::test]
async fn a_lease_that_is_lost_ends_the_work_at_once() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let client = bench.tokio();
    let mut terms = 0;
    let election = client.election("scheduler");
    let outcome = election.run_while_leader(|_| {
        terms += 1;
        let client = client.clone();
        async move {
            client.close().await;
            std::future::pending::<ControlFlow<()>>().await
        }
    });
    assert_eq!(outcome.await, Err(ElectionError::Acquire(AcquireError::Closed)));
    assert_eq!(terms, 1);
}

#[test]
fn a_thread_whose_work_did_not_lead_to_its_end_is_told() {
    use blocking::Kit;
    let bench = Bench::new();
    let election = bench.plain().election("scheduler");
    let mut terms = 0;
    let outcome = election.run_while_leader(|leadership| {
        terms += 1;
        if terms == 2 {
            return ControlFlow::Break(leadership.check());
        }
        bench.faults.fail_all(Operation::Renew, AWAY);
        bench.clock.advance(25 * SECOND);
        let lost = leadership.lost();
        assert!(matches!(lost, LeadershipLost::NotRenewed { .. }), "{lost}");
        bench.faults.heal_everything();
        ControlFlow::Continue(())
    });
    assert_eq!((outcome, terms), (Ok(Ok(())), 2));
    let outcome = election.run_while_leader(|_| {
        bench.faults.fail_all(Operation::Renew, AWAY);
        bench.clock.advance(25 * SECOND);
        ControlFlow::Break(7)
    });
    assert!(matches!(outcome, Err(ElectionError::Lost(LeadershipLost::NotRenewed { .. }))), "{outcome:?}");
}

#[test]
fn a_campaign_is_cancelled_by_another_thread() {
    use blocking::Kit;
    let bench = Bench::new();
    let (leader, candidate) = (bench.plain(), bench.plain());
    let leadership = leader.election("scheduler").campaign().unwrap();
    let cancel = CancelToken::new();
    let campaign = thread::spawn({
        let cancel = cancel.clone();
        move || candidate.election("scheduler").cancelled_by(&cancel).run_while_leader(|_| ControlFlow::Break(()))
    });
    cancel.cancel();
    assert_eq!(campaign.join().unwrap(), Err(ElectionError::Acquire(AcquireError::Cancelled)));
    leadership.resign().unwrap();
    let work = |_| -> ControlFlow<()> { panic!("the work was begun") };
    let election = leader.election("scheduler").cancelled_by(&cancel);
    assert_eq!(
        election.run_while_leader(work),
        Err(ElectionError::Acquire(AcquireError::Cancelled)),
        "cancelled before"
    );
}

/// A lease counts from when it was requested, so one that is granted late is too short to lead for long.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_granted_late_is_renewed_before_it_leads() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let election = bench.tokio().election("scheduler").grace(13 * SECOND);
    bench.faults.hold(Operation::Acquire);
    let campaign = tokio::spawn(async move { election.campaign().await });
    until("the campaign", || bench.faults.ran(Operation::Acquire) == 1).await;
    bench.clock.advance(16 * SECOND);
    bench.faults.let_go(Operation::Acquire);
    let leadership = campaign.await.unwrap().unwrap();
    assert_eq!(leadership.check(), Ok(()));
    assert!(leadership.remaining() > 15 * SECOND, "{:?}", leadership.remaining());
}

#[test]
fn a_lease_that_was_granted_late_is_renewed_before_it_leads_in_a_thread() {
    use blocking::Kit;
    let bench = Bench::new();
    let election = bench.plain().election("scheduler").grace(13 * SECOND);
    bench.faults.hold(Operation::Acquire);
    let campaign = thread::spawn(move || election.campaign());
    wait_for("the campaign", || (bench.faults.ran(Operation::Acquire) == 1).then_some(()));
    bench.clock.advance(16 * SECOND);
    bench.faults.let_go(Operation::Acquire);
    let leadership = campaign.join().unwrap().unwrap();
    assert_eq!(leadership.check(), Ok(()));
    assert!(leadership.remaining() > 15 * SECOND, "{:?}", leadership.remaining());
}

#[tokio::test(flavor = "multi_thread")]
async fn observers_see_each_leader_and_its_term() {
    use nonblocking::Kit;
    for store in Store::each() {
        let (one, two) = (store.tokio().await, store.tokio().await);
        let election = two.election("scheduler").pace(SECOND / 50);
        let mut leaders = election.observe();
        assert_eq!((leaders.changed().await, election.leader().await), (Ok(None), Ok(None)));
        for _ in 0..2 {
            let leadership = one.election("scheduler").why("web-3:8080").campaign().await.unwrap();
            let leader = leaders.changed().await.unwrap().unwrap();
            assert_eq!((leader.term(), leaders.leader()), (Some(leadership.term()), Some(&leader)));
            assert!(leader.holder.to_string().contains("web-3:8080"), "{leader:?}");
            leadership.resign().await.unwrap();
            assert_eq!(leaders.changed().await, Ok(None));
        }
        let mut stream = std::pin::pin!(election.observe().into_stream());
        assert_eq!(stream.next().await, Some(Ok(None)));
        let leadership = one.election("scheduler").campaign().await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap().unwrap().term(), Some(leadership.term()));
    }
}

#[test]
fn threads_observe_as_well() {
    use blocking::Kit;
    for store in Store::each() {
        let (one, two) = (store.plain(), store.plain());
        let mut leaders = two.election("scheduler").pace(SECOND / 50).observe();
        assert_eq!((leaders.next(), leaders.look_again()), (Some(Ok(None)), Ok(false)));
        let leadership = one.election("scheduler").campaign().unwrap();
        assert_eq!(leaders.changed().unwrap().unwrap().term(), Some(leadership.term()));
        assert_eq!(leaders.leader(), one.election("scheduler").leader().unwrap().as_ref());
        drop(leadership);
        assert_eq!(leaders.next(), Some(Ok(None)));
    }
}

/// They send nothing any more, and notify observers.
#[tokio::test(flavor = "multi_thread")]
async fn observers_end_when_their_client_is_closed() {
    let bench = Bench::new();
    let (tasks, threads) = (bench.tokio(), bench.plain());
    let mut leaders = nonblocking::Kit::election(&tasks, "scheduler").pace(SECOND / 20).observe();
    let mut plain = blocking::Kit::election(&threads, "scheduler").pace(SECOND / 20).observe();
    assert_eq!(leaders.changed().await, Ok(None));
    let task = tokio::spawn(async move { (leaders.changed().await, leaders.changed().await) });
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || tell.send([(); 3].map(|()| plain.changed())).unwrap());
    until("a look", || bench.faults.calls(Operation::Inspect) > 2).await;
    tasks.close().await;
    threads.close();
    let closed = || Err(ObserveError::Closed);
    let task = tokio::time::timeout(20 * SECOND, task).await.expect("the task hears of the end").unwrap();
    assert_eq!(task, (closed(), closed()));
    let thread = told.recv_timeout(20 * SECOND).expect("the thread hears of the end");
    assert_eq!(thread[1..], [closed(), closed()]);
    let looks = bench.faults.calls(Operation::Inspect);
    tokio::time::sleep(SECOND / 5).await;
    assert_eq!(bench.faults.calls(Operation::Inspect), looks);
}

/// However rarely they look. As a stream or an iterator, they say so once and end.
#[tokio::test(flavor = "multi_thread")]
async fn observers_hear_of_the_close_at_once_and_end() {
    let bench = Bench::new();
    let (tasks, threads) = (bench.tokio(), bench.plain());
    let leaders = nonblocking::Kit::election(&tasks, "scheduler").pace(3600 * SECOND).observe();
    let plain = blocking::Kit::election(&threads, "scheduler").pace(3600 * SECOND).observe();
    let task = tokio::spawn(async move { leaders.into_stream().take(4).collect::<Vec<_>>().await });
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || tell.send(plain.take(4).collect::<Vec<_>>()).unwrap());
    until("both looks", || bench.faults.calls(Operation::Inspect) >= 2).await;
    // Long enough for both to wait for the next one, as a rule.
    tokio::time::sleep(SECOND / 20).await;
    tasks.close().await;
    threads.close();
    let all = [Ok(None), Err(ObserveError::Closed)];
    assert_eq!(tokio::time::timeout(20 * SECOND, task).await.expect("the stream ends").unwrap(), all);
    assert_eq!(told.recv_timeout(20 * SECOND).expect("the iterator ends"), all);
}

#[tokio::test]
async fn an_observer_waits_for_a_change_and_goes_on_after_an_error() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let client = bench.tokio();
    let mut leaders = client.election("scheduler").pace(SECOND / 20).observe();
    assert_eq!(leaders.changed().await, Ok(None));
    let waited = tokio::time::timeout(SECOND, leaders.changed()).await;
    assert!(waited.is_err(), "nothing has changed: {waited:?}");
    let looks = bench.faults.calls(Operation::Inspect);
    assert!((2..=22).contains(&looks), "{looks} looks in a second");
    let leadership = client.election("scheduler").campaign().await.unwrap();
    bench.faults.fail_next(Operation::Inspect, AWAY);
    assert!(matches!(leaders.changed().await, Err(ObserveError::Backend(_))));
    assert_eq!(leaders.changed().await.unwrap().unwrap().term(), Some(leadership.term()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_election_on_a_quorum_is_observed_and_bad_names_are_refused() {
    let store = Store::quorum();
    let (tasks, threads) = (store.tokio().await, store.plain());
    let outcomes = |name: &'static str| {
        let (tasks, threads) = (nonblocking::Kit::election(&tasks, name), blocking::Kit::election(&threads, name));
        async move { (tasks.observe().changed().await, threads.leader()) }
    };
    let (task, thread) = outcomes("scheduler").await;
    assert!(matches!((&task, &thread), (Ok(None), Ok(None))), "{task:?} {thread:?}");
    let (task, thread) = outcomes("").await;
    assert!(matches!((&task, &thread), (Err(ObserveError::Invalid(_)), Err(ObserveError::Invalid(_)))));
    let short = blocking::Kit::election(&threads, "scheduler").ttl(SECOND).campaign();
    assert!(matches!(short, Err(AcquireError::Invalid(_))), "{short:?}");
}

/// As in a `select!` with something that happens more often than the pace.
#[tokio::test]
async fn an_observer_that_is_asked_again_and_again_looks_at_its_pace() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let mut leaders = bench.tokio().election("scheduler").pace(SECOND / 5).observe();
    assert_eq!(leaders.changed().await, Ok(None));
    let leadership = healthy(&bench);
    let leadership = blocking::Kit::election(&leadership, "scheduler").campaign().unwrap();
    for _ in 0..100 {
        if let Ok(seen) = tokio::time::timeout(SECOND / 20, leaders.changed()).await {
            assert_eq!(seen.unwrap().and_then(|leader| leader.term()), Some(leadership.term()));
            return;
        }
    }
    panic!("it has not looked for 5 seconds");
}

/// The lease cannot be renewed after a hand-over that left too little of it.
#[tokio::test(flavor = "multi_thread")]
async fn work_is_not_begun_by_a_candidate_whose_lease_is_about_to_end() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let election = bench.tokio().election("scheduler").grace(13 * SECOND);
    let begun = Arc::new(AtomicU32::new(0));
    bench.faults.hold(Operation::Acquire);
    let counted = Arc::clone(&begun);
    let led = tokio::spawn(async move {
        let work = |leadership: Arc<nonblocking::Leadership>| {
            if leadership.check().is_err() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            std::future::ready(if leadership.check().is_ok() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        };
        election.run_while_leader(work).await
    });
    until("the claim", || bench.faults.ran(Operation::Acquire) == 1).await;
    bench.faults.fail_all(Operation::Renew, AWAY);
    bench.clock.advance(16 * SECOND);
    bench.faults.let_go(Operation::Acquire);
    until("a renewal", || bench.faults.calls(Operation::Renew) > 0).await;
    bench.faults.heal_everything();
    for _ in 0..400 {
        if led.is_finished() {
            break;
        }
        bench.clock.advance(SECOND / 10);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(led.await.unwrap().is_ok());
    assert_eq!(begun.load(Ordering::SeqCst), 0, "work began in a term that was over");
}

/// The events for observers of a client, without what is only for debugging.
#[derive(Clone, Default)]
struct Told(Arc<std::sync::Mutex<Vec<String>>>);

impl lock_host::Observer for Told {
    fn observe(&self, event: &lock_host::Event) {
        if event.level() > lock_host::Level::Debug {
            self.0.lock().unwrap().push(format!("{}: {event}", event.name()));
        }
    }
}

impl Told {
    fn all(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn client(&self, bench: &Bench) -> lock_blocking::Client {
        let backend = lock_memory::faults::Faulty::new(bench.store.blocking(), &bench.faults);
        let builder = lock_blocking::Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone()));
        builder.observer(Arc::new(self.clone())).build().unwrap()
    }
}

/// It waits for days, and nothing is wrong. A payment that waits as long is reported.
#[test]
fn a_standby_is_not_reported_as_waiting_long() {
    use blocking::Kit;
    let (bench, standby, payment) = (Bench::new(), Told::default(), Told::default());
    let leader = healthy(&bench).election("scheduler").ttl(600 * SECOND).campaign().unwrap();
    let (candidate, other) = (standby.client(&bench), payment.client(&bench));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| candidate.election("scheduler").campaign().map(drop));
        let paying = scope.spawn(|| other.mutex("scheduler").acquire().map(drop));
        wait_for("the candidate and the payment to be told of a long wait, or not", || {
            bench.clock.advance(SECOND);
            (payment.0.lock().unwrap().len() >= 3).then_some(())
        });
        leader.resign().unwrap();
        assert!(waiting.join().unwrap().is_ok() && paying.join().unwrap().is_ok());
    });
    assert_eq!(standby.all(), [""; 0]);
    assert!(payment.all().iter().all(|told| told.starts_with("waiting long: ")));
}

/// The outage is shorter than the ttl, so the lease itself lasts to the end.
#[test]
fn a_leader_that_steps_down_in_an_outage_is_told_as_a_loss_once_and_one_that_resigns_is_not() {
    use blocking::Kit;
    let (bench, told) = (Bench::new(), Told::default());
    let client = told.client(&bench);
    let election = client.election("scheduler");
    let leadership = election.campaign().unwrap();
    bench.faults.fail_all(Operation::Renew, AWAY);
    bench.clock.advance(24 * SECOND);
    let lost = leadership.check().unwrap_err();
    assert!(matches!(lost, LeadershipLost::NotRenewed { .. }), "{lost}");
    bench.faults.heal_everything();
    leadership.resign().unwrap();
    let losses: Vec<_> = told.all().into_iter().filter(|told| told.starts_with("lost: ")).collect();
    assert!(matches!(&losses[..], [one] if one.contains("after 24.0s") && one.contains("in time")), "{losses:?}");
    assert_eq!(bench.free(&["scheduler"]), ["scheduler"], "its lease was released all the same");
    election.campaign().unwrap().resign().unwrap();
    drop(election.campaign().unwrap());
    assert!(!told.all().iter().any(|told| told.starts_with("lost: ")), "it has resigned");
}

#[test]
fn an_orderly_end_of_the_client_is_no_loss() {
    use blocking::Kit;
    let (bench, told) = (Bench::new(), Told::default());
    let client = told.client(&bench);
    let leadership = client.election("scheduler").campaign().unwrap();
    client.close();
    assert!(matches!(leadership.check(), Err(LeadershipLost::Lost(_))), "it is told itself");
    drop(leadership);
    assert_eq!(told.all(), [""; 0]);
    assert_eq!(bench.free(&["scheduler"]), ["scheduler"]);
}
