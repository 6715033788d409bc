//! Connections that end while nobody uses them, or under a request that may be sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Certainty, Effect, ErrorKind, EventSink, Released, Renewed};
use lock_host::HoldError;
use test_support::{AfterDrop, Fault, Proxy, RedisOptions, RedisServer};

use crate::facades::FACADES;
use crate::faults::{evaluations, exists};
use crate::support::{BOTH, Client, SOON, both, claim, draw, eventually, release_of, take};

const TTL: Duration = Duration::from_secs(60);

/// Waits until the server has closed all connections that it may close, which excludes subscribers.
fn wait_until_idle_ones_are_closed(server: &RedisServer) {
    eventually("the server closes what is idle", || {
        let list: String = server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
        // The one that asks is listed as well.
        list.lines().count() == 1
    });
}

/// Ends all connections of others.
fn kill_all(server: &RedisServer) {
    for kind in ["normal", "pubsub"] {
        server.command::<()>(&["CLIENT", "KILL", "TYPE", kind]);
    }
}

#[test]
fn a_release_and_a_renewal_outlive_the_connection() {
    let server = RedisServer::start();
    for (facade, connect) in BOTH {
        let client = connect(&server.url());
        let (claim, lease) = take(&client, facade);
        kill_all(&server);
        assert!(matches!(client.renew(&[lease], SOON).unwrap()[..], [Renewed::Renewed { .. }]), "{facade}");
        kill_all(&server);
        assert_eq!(client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap(), Released::Released);
        assert!(!exists(&server, facade), "{facade}: not released");
    }
}

#[test]
fn requests_that_may_have_taken_effect_are_sent_again_except_acquires() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    for (facade, connect) in BOTH {
        let client = connect(&server.url_at(proxy.port()));
        let (held, lease) = take(&client, facade);
        let lose_a_reply = |what: &str, asked: u64, ask: &mut dyn FnMut()| {
            let before = evaluations(&server);
            proxy.set(Fault::CutOneReply);
            ask();
            assert_eq!(proxy.fired(), 1, "{facade}: no reply was lost");
            assert_eq!(evaluations(&server) - before, asked, "{facade}: how often {what} was asked");
        };
        lose_a_reply("a renewal", 2, &mut || {
            let renewed = client.renew(std::slice::from_ref(&lease), SOON).unwrap();
            assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{facade}: {renewed:?}");
        });
        lose_a_reply("a release", 2, &mut || {
            let released = client.release(&release_of(&held, Certainty::Answered), SOON).unwrap();
            assert_eq!(released, Released::Released, "{facade}: the first one did it");
        });
        assert!(!exists(&server, facade));
        // No earlier try is in doubt, so "not held" is the answer.
        assert_eq!(client.release(&release_of(&held, Certainty::Answered), SOON).unwrap(), Released::NotHeld);
        let before = evaluations(&server);
        proxy.set(Fault::CutOneReply);
        let error = client.acquire(&claim(facade), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::Unknown), "{facade}: {error}");
        assert_eq!((proxy.fired(), evaluations(&server) - before), (1, 1), "{facade}: an acquire was sent again");
        server.command::<()>(&["DEL", facade]);
    }
}

#[test]
fn a_release_that_another_server_answers_ended_nothing() {
    for (facade, connect) in BOTH {
        let (mut server, heir) = (RedisServer::start(), RedisServer::start());
        let proxy = Proxy::start(server.port());
        let client = connect(&server.url_at(proxy.port()));
        let (held, _) = take(&client, facade);
        let release = || client.release(&release_of(&held, Certainty::Answered), 4 * SOON);
        let released = fail_over_under(&proxy, &mut server, &heir, release).unwrap();
        assert_eq!(released, Released::NotHeld, "{facade}: the first try never arrived");
    }
    for &(facade, connect) in FACADES {
        let (mut server, heir) = (RedisServer::start(), RedisServer::start());
        let proxy = Proxy::start(server.port());
        let client = connect(&server.url_at(proxy.port()));
        let held = client.acquire("job", TTL);
        let ended = fail_over_under(&proxy, &mut server, &heir, || held.end());
        assert!(matches!(ended, Err(HoldError::Lost(_))), "{facade}: {ended:?}");
    }
}

/// A server is lost with its data while a request is in flight that it never runs. Another one takes its place.
pub(crate) fn fail_over_under<T: Send>(
    proxy: &Proxy,
    server: &mut RedisServer,
    heir: &RedisServer,
    ask: impl FnOnce() -> T + Send,
) -> T {
    server.stop();
    proxy.set(Fault::Delay(Duration::from_millis(1)));
    proxy.lead_to(heir.port());
    thread::scope(|scope| {
        let asked = scope.spawn(ask);
        eventually("the request is in flight", || proxy.fired() > 0);
        server.kill();
        asked.join().unwrap()
    })
}

#[test]
fn a_release_that_cannot_be_retried_is_of_unknown_effect() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    for (facade, connect) in BOTH {
        let client = connect(&server.url_at(proxy.port()));
        let (claim, _) = take(&client, facade);
        // The first try arrives; the connection for the second is never greeted.
        proxy.set(Fault::DropReplies(AfterDrop::Cut));
        let error = client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::Unknown), "{facade}: {error}");
        assert!(!exists(&server, facade), "{facade}: the first try did not arrive");
        proxy.heal();
    }
}

#[test]
fn an_idle_connection_that_the_server_closed_is_not_used() {
    let server = RedisServer::start_with(RedisOptions::default().arguments(&["--timeout", "1"]));
    let client = connect_plain(&server);
    draw(&client, "job");
    wait_until_idle_ones_are_closed(&server);
    draw(&client, "job");
}

fn connect_plain(server: &RedisServer) -> Client {
    BOTH.into_iter().find_map(|(facade, connect)| (facade == "blocking").then(|| connect(&server.url()))).unwrap()
}

#[test]
fn a_connection_that_said_it_ended_is_not_used() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()).into_iter().filter(|(facade, _)| *facade == "async") {
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        client.listen(EventSink::new(move |_| _ = count.fetch_add(1, Ordering::SeqCst)));
        draw(&client, facade);
        kill_all(&server);
        eventually("the end is told", || told.load(Ordering::SeqCst) > 0);
        draw(&client, facade);
    }
}

#[test]
fn a_killed_connection_costs_the_next_holder_no_time() {
    // Short enough to close connections that are idle during the hold, on a server that also closes on command.
    let server = RedisServer::start_with(RedisOptions::default().arguments(&["--timeout", "1"]));
    for &(facade, connect) in FACADES {
        for name in ["killed", "idle"] {
            let (first, second) = (connect(&server.url()), connect(&server.url()));
            let held = first.acquire(name, TTL);
            thread::scope(|scope| {
                let next = scope.spawn(|| second.acquire(name, TTL));
                let queue = format!("leasehold:{{{name}}}:q");
                eventually("the next one waits", || server.command::<u8>(&["LLEN", &queue]) == 1);
                if name == "killed" {
                    kill_all(&server);
                } else {
                    wait_until_idle_ones_are_closed(&server);
                }
                assert_eq!(held.end(), Ok(()), "{facade}, {name}");
                let released = Instant::now();
                next.join().unwrap().release();
                assert!(released.elapsed() < TTL / 4, "{facade}, {name}: the lock lay idle");
            });
        }
    }
}
