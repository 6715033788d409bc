//! Waiting in line: who is next, who is skipped, and how soon.

use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use lock_core::{
    Answer, Certainty, Claim, EventSink, FencingToken, Queueing, Released, Renewed, StoreEvent, Terms, Ttl, Waiting,
};
use lock_redis::nonblocking;
use test_support::{Fault, Proxy, RedisOptions, RedisServer};

use crate::facades::{Child, FACADES, Facade, handed_in, on_threads, on_tokio, over};
use crate::support::{Client, SOON, both, claim, eventually, granted, release_of, take};

/// A ttl with a place that is shorter.
const LONG: Duration = Duration::from_secs(30);
/// How long something may take that happens at once.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How many waiters are in the store's queue.
pub(crate) fn waiting(server: &RedisServer, name: &str) -> usize {
    server.command(&["HLEN", &format!("leasehold:{{{name}}}:w")])
}

/// How many owners the list of the queue has, those that left included.
pub(crate) fn listed(server: &RedisServer, name: &str) -> usize {
    server.command(&["LLEN", &format!("leasehold:{{{name}}}:q")])
}

fn eventually_waiting(server: &RedisServer, name: &str, count: usize) {
    eventually(&format!("{count} wait for {name}"), || waiting(server, name) == count);
}

/// No lock and no queue is left at the store, now or soon.
pub(crate) fn nothing_is_left(server: &RedisServer) {
    eventually("nothing is left", || {
        // The tombstones are kept for a while.
        let passes = |key: &str| key.contains(":t:") || key.ends_with(":n");
        server.keys().iter().all(|key| passes(key))
    });
}

type Served<'scope> = ScopedJoinHandle<'scope, (FencingToken, Instant)>;

/// Waits for the lock on another thread, and releases it at once; returns when it was acquired.
fn wait_for<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    facade: &'env Facade,
    name: &'env str,
) -> Served<'scope> {
    scope.spawn(move || {
        let held = facade.acquire(name, LONG);
        let (token, at) = (held.token(), Instant::now());
        held.release();
        (token, at)
    })
}

/// Takes a place in the queue.
#[track_caller]
pub(crate) fn queue(client: &Client, name: &str) -> Claim {
    let waiter = Claim { queueing: Queueing::Wanted, ..claim(name) };
    let answer = client.acquire(&waiter, SOON);
    assert!(matches!(answer, Ok(Answer::Queued { .. })), "{name}: {answer:?}");
    waiter
}

#[track_caller]
pub(crate) fn release(client: &Client, claim: &Claim) {
    assert_eq!(client.release(&release_of(claim, Certainty::Answered), SOON).unwrap(), Released::Released);
}

#[test]
fn first_come_first_served() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        let waiters: Vec<Claim> = (0..5).map(|_| queue(&client, facade)).collect();
        let (mut last, mut before) = (holder, None);
        for waiter in waiters {
            release(&client, &last);
            let lease = granted(client.acquire(&waiter, SOON));
            assert!(Some(lease.tokens.low()) > before, "{facade}");
            (last, before) = (waiter, Some(lease.tokens.high()));
        }
        release(&client, &last);
        nothing_is_left(&server);
    }
}

/// The next in line is notified by the release itself, and by no other change of the lock.
#[test]
fn a_renewal_wakes_nobody_and_a_release_the_next_one_only() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (told, grants) = mpsc::channel();
        client.listen(EventSink::new(move |event| {
            if let StoreEvent::Granted { lease, .. } = event {
                told.send(lease.owner).unwrap();
            }
        }));
        let (holder, lease) = take(&client, facade);
        let [next, last] = [(); 2].map(|()| queue(&client, facade));
        for _ in 0..3 {
            let renewed = client.renew(std::slice::from_ref(&lease), SOON).unwrap();
            assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{facade}");
        }
        assert_eq!(grants.recv_timeout(Duration::from_millis(200)), Err(RecvTimeoutError::Timeout), "{facade}");
        for (holder, next) in [(&holder, &next), (&next, &last)] {
            release(&client, holder);
            assert_eq!(grants.recv_timeout(SOON), Ok(next.owner), "{facade}");
        }
        assert_eq!(grants.try_recv(), Err(TryRecvError::Empty), "{facade}");
        release(&client, &last);
        nothing_is_left(&server);
    }
}

#[test]
fn capabilities_report_how_waiters_are_notified() {
    let server = RedisServer::start();
    let resp2 = format!("{}?protocol=resp2", server.url());
    let client = redis::Client::open(server.url()).unwrap();
    let handed_in = over(async || nonblocking::Redis::from(client.get_multiplexed_async_connection().await.unwrap()));
    for (facade, expected) in [
        (on_tokio(&server.url()), Waiting::QueueWithPush),
        (on_threads(&server.url()), Waiting::QueueWithPush),
        (on_tokio(&resp2), Waiting::Queue),
        // Threads are notified over a subscription of their own, which both protocols have.
        (on_threads(&resp2), Waiting::QueueWithPush),
        (handed_in, Waiting::Queue),
    ] {
        assert_eq!(facade.capabilities().waiting, expected);
    }
}

#[test]
fn a_killed_holder_and_a_killed_waiter_are_in_nobodys_way() {
    let ttl = Duration::from_secs(2);
    for &(facade, connect) in FACADES {
        let server = RedisServer::start();
        let here = connect(&server.url());
        let mut holder = Child::start(facade, &server.url(), "job", ttl);
        holder.holds();
        let mut first = Child::start(facade, &server.url(), "job", LONG);
        eventually_waiting(&server, "job", 1);
        thread::scope(|scope| {
            let second = wait_for(scope, &here, "job");
            eventually_waiting(&server, "job", 2);
            first.kill();
            holder.kill();
            let killed_at = Instant::now();
            let (_, at) = second.join().unwrap();
            assert!(at - killed_at < ttl + SOON, "{facade}: served after {:?}", at - killed_at);
        });
        nothing_is_left(&server);
    }
}

#[test]
fn a_frozen_waiter_holds_the_queue_up_for_its_place_and_not_for_its_ttl() {
    let served_after = |facade: &'static str| {
        let server = RedisServer::start();
        let (holder, next) = (on_tokio(&server.url()), on_threads(&server.url()));
        let held = holder.acquire("job", LONG);
        let frozen = Child::start(facade, &server.url(), "job", LONG);
        eventually_waiting(&server, "job", 1);
        thread::scope(|scope| {
            let next = wait_for(scope, &next, "job");
            eventually_waiting(&server, "job", 2);
            frozen.freeze();
            let frozen_at = Instant::now();
            held.release();
            next.join().unwrap().1 - frozen_at
        })
    };
    thread::scope(|scope| {
        for (facade, after) in
            FACADES.iter().map(|(facade, _)| (facade, scope.spawn(move || served_after(facade)))).collect::<Vec<_>>()
        {
            let after = after.join().unwrap();
            // Until then the frozen process had the lock.
            assert!(after > Duration::from_secs(8) && after < Duration::from_secs(16), "{facade}: {after:?}");
        }
    });
}

#[test]
fn a_cancelled_waiter_leaves_the_queue_at_once() {
    let server = RedisServer::start();
    let holder = on_threads(&server.url());
    for &(facade, connect) in FACADES {
        let held = holder.acquire(facade, LONG);
        let here = connect(&server.url());
        thread::scope(|scope| {
            scope.spawn(|| here.give_up_after(facade, LONG, 2 * AT_ONCE));
            eventually_waiting(&server, facade, 1);
        });
        let given_up_at = Instant::now();
        eventually_waiting(&server, facade, 0);
        assert!(given_up_at.elapsed() < AT_ONCE, "{facade}: {:?}", given_up_at.elapsed());
        held.release();
    }
    nothing_is_left(&server);
}

#[test]
fn a_grant_that_nobody_wants_any_more_is_passed_on() {
    for &(facade, connect) in FACADES {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let (holder, far) = (on_threads(&server.url()), connect(&server.url_at(proxy.port())));
        let near = connect(&server.url());
        let held = holder.acquire("job", LONG);
        thread::scope(|scope| {
            let far = scope.spawn(|| far.give_up_after("job", LONG, 2 * AT_ONCE));
            eventually_waiting(&server, "job", 1);
            let next = wait_for(scope, &near, "job");
            eventually_waiting(&server, "job", 2);
            // Its leaving does not get through, so the lock is handed over to it.
            proxy.set(Fault::Hold);
            far.join().unwrap();
            held.release();
            eventually_waiting(&server, "job", 1);
            eventually("what went to it or came from it is held", || proxy.fired() > 0);
            assert!(!next.is_finished(), "{facade}: the lock went past the one that was first");
            proxy.heal();
            let healed_at = Instant::now();
            let (_, at) = next.join().unwrap();
            assert!(at - healed_at < 2 * AT_ONCE, "{facade}: passed on after {:?}", at - healed_at);
        });
    }
}

#[test]
fn a_foreign_release_is_noticed_soon() {
    const COMPARE_AND_DELETE: &str =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";
    let server = RedisServer::start();
    for &(facade, connect) in FACADES {
        let here = connect(&server.url());
        let set = ["SET", facade, "c2VjcmV0", "NX", "PX", "60000"];
        assert_eq!(server.command::<Option<String>>(&set).as_deref(), Some("OK"));
        thread::scope(|scope| {
            let waiter = wait_for(scope, &here, facade);
            eventually_waiting(&server, facade, 1);
            thread::sleep(Duration::from_millis(500));
            assert!(!waiter.is_finished(), "{facade}: both hold it");
            assert_eq!(server.command::<u8>(&["EVAL", COMPARE_AND_DELETE, "1", facade, "c2VjcmV0"]), 1);
            let released_at = Instant::now();
            let (_, at) = waiter.join().unwrap();
            assert!(at.saturating_duration_since(released_at) < AT_ONCE, "{facade}");
        });
        let held = here.acquire(facade, LONG);
        assert_eq!(server.command::<Option<String>>(&set), None, "{facade}: both hold it");
        assert_eq!(server.command::<u8>(&["EVAL", COMPARE_AND_DELETE, "1", facade, "c2VjcmV0"]), 0);
        held.release();
    }
    nothing_is_left(&server);
}

#[test]
fn a_subscription_to_a_pattern_brings_no_dead_waiter_to_life() {
    let server = RedisServer::start();
    let mut operator = server.connection();
    let mut operator = operator.as_pubsub();
    operator.psubscribe("leasehold:*").unwrap();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        let dead = both(&server.url()).map(|(_, dead)| {
            queue(&dead, facade);
            dead
        });
        let last = queue(&client, facade);
        let channels = || server.command::<Vec<String>>(&["PUBSUB", "CHANNELS", "leasehold:inbox:*"]).len();
        let with_the_dead = channels();
        drop(dead);
        eventually("the dead are gone", || channels() == with_the_dead - 2);
        release(&client, &holder);
        granted(client.acquire(&last, SOON));
        release(&client, &last);
    }
    nothing_is_left(&server);
}

#[test]
fn a_waiter_whose_connections_are_killed_is_still_served() {
    for &(facade, connect) in FACADES {
        for kind in ["pubsub", "normal"] {
            let server = RedisServer::start();
            let (holder, here) = (on_threads(&server.url()), connect(&server.url()));
            let held = holder.acquire("job", LONG);
            thread::scope(|scope| {
                let waiter = wait_for(scope, &here, "job");
                eventually_waiting(&server, "job", 1);
                eventually("somebody is killed", || server.command::<u8>(&["CLIENT", "KILL", "TYPE", kind]) > 0);
                thread::sleep(Duration::from_millis(300));
                let (token, released_at) = (held.token(), Instant::now());
                held.release();
                let (next, at) = waiter.join().unwrap();
                assert!(next > token, "{facade}");
                assert!(at.saturating_duration_since(released_at) < 2 * AT_ONCE, "{facade}, {kind}");
            });
            nothing_is_left(&server);
        }
    }
}

#[test]
fn no_kind_of_client_is_starved() {
    let server = RedisServer::start();
    let resp2 = format!("{}?protocol=resp2", server.url());
    let facades = [on_tokio(&server.url()), on_threads(&server.url()), on_tokio(&resp2), on_threads(&resp2)];
    let facades: Vec<Facade> = facades.into_iter().chain(handed_in(&server)).collect();
    let end = Instant::now() + Duration::from_secs(4);
    let turns: Vec<u32> = thread::scope(|scope| {
        let contend = |facade: &Facade| {
            let mut turns = 0;
            while Instant::now() < end {
                facade.acquire("job", LONG).release();
                turns += 1;
            }
            turns
        };
        let threads: Vec<_> = facades.iter().map(|facade| scope.spawn(move || contend(facade))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (fewest, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
    assert!(*fewest >= 3 && most <= &(2 * fewest + 2), "{turns:?}");
    nothing_is_left(&server);
}

/// Dead waiters are removed even while a live one waits behind a holder that stays.
#[test]
fn the_dead_do_not_pile_up() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        take(&client, facade);
        queue(&client, facade);
        for _ in 0..40 {
            let dies = Claim { queueing: Queueing::Wanted, terms: Terms::exclusive(Ttl::MIN), ..claim(facade) };
            assert!(matches!(client.acquire(&dies, SOON), Ok(Answer::Queued { .. })), "{facade}");
            thread::sleep(Ttl::MIN.get());
        }
        let (left, listed) = (waiting(&server, facade), listed(&server, facade));
        assert!(left <= 16 && listed <= 16, "{facade}: {left} and {listed} of 41 are still there");
    }
}

/// A server without RESP3 serves as well, and its leases are renewed.
#[test]
fn a_server_without_hello_is_asked_instead() {
    let options = RedisOptions::default().arguments(&["--rename-command", "HELLO", ""]);
    let server = RedisServer::start_with(options);
    let (facade, ttl) = (on_tokio(&server.url()), Duration::from_secs(6));
    assert_eq!(facade.capabilities().waiting, Waiting::Queue);
    let held = facade.acquire("job", ttl);
    let first = held.token();
    thread::sleep(ttl * 4 / 3);
    assert!(held.is_stored(), "it was renewed");
    let waiter = on_tokio(&server.url());
    thread::scope(|scope| {
        let served = wait_for(scope, &waiter, "job");
        eventually_waiting(&server, "job", 1);
        held.release();
        assert!(served.join().unwrap().0 > first);
    });
}

/// A client that may no longer subscribe after it reconnected asks again soon, although its claim was to be notified.
#[test]
fn a_right_that_is_lost_later_costs_no_waiter_its_turn() {
    let server = RedisServer::start();
    let user = |right: &str| server.command::<()>(&["ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", right]);
    user("&*");
    let url = format!("redis://app:pw@127.0.0.1:{}", server.port());
    let holder = on_threads(&server.url());
    for facade in [on_tokio(&url), on_threads(&url)] {
        user("&*");
        facade.acquire("job", LONG).release();
        user("resetchannels");
        server.command::<i64>(&["CLIENT", "KILL", "USER", "app"]);
        let held = holder.acquire("job", LONG);
        thread::scope(|scope| {
            let served = wait_for(scope, &facade, "job");
            eventually_waiting(&server, "job", 1);
            thread::sleep(Duration::from_millis(500));
            let released = Instant::now();
            held.release();
            let late = served.join().unwrap().1 - released;
            assert!(late < AT_ONCE, "{late:?}: {:?}", facade.capabilities());
        });
    }
}

/// The further behind a waiter is, the less often it asks: many waiters must not keep the server busy.
#[test]
fn waiters_without_notifications_ask_at_intervals_by_position() {
    let server = RedisServer::start();
    server.command::<()>(&["ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "resetchannels"]);
    let [_, (_, deaf)] = both(&format!("redis://app:pw@127.0.0.1:{}", server.port()));
    let [_, (_, client)] = both(&server.url());
    take(&client, "job");
    let place = || {
        let answer = deaf.acquire(&Claim { queueing: Queueing::Wanted, ..claim("job") }, SOON).unwrap();
        let Answer::Queued { position, valid_for, .. } = answer else { panic!("not queued: {answer:?}") };
        (position, valid_for)
    };
    assert_eq!(place(), (1, Duration::from_millis(300)));
    for _ in 0..23 {
        queue(&client, "job");
    }
    assert_eq!(place(), (25, Duration::from_millis(750)));
}
