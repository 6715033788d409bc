//! Servers that stop, connections that break, replies that never come.

use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, Certainty, Claim, Effect, ErrorKind, Lease, Queueing, Released, Renewed, TokenRange, Width};
use test_support::{AfterDrop, Fault, Proxy, RedisOptions, RedisServer};

use crate::support::{BOTH, SHORT, SOON, both, claim, draw, eventually, granted, is_busy, refusals, release_of, take};

pub(crate) fn exists(server: &RedisServer, key: &str) -> bool {
    server.command(&["EXISTS", key])
}

#[test]
fn a_stopped_server_means_unknown_and_the_release_undoes_the_acquire() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        draw(&client, facade);
        let claim = claim(facade);
        server.stop();
        let error = client.acquire(&claim, SHORT).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{facade}: {error}");
        let request = release_of(&claim, Certainty::Unknown);
        let first = client.release(&request, SHORT).unwrap_err();
        server.resume();
        if facade == "async" {
            // One connection: the release was sent, and it follows the acquire.
            assert_eq!((first.kind(), first.effect()), (ErrorKind::Timeout, Effect::Unknown), "{first}");
        } else {
            // The release needed a new connection, so its error says that it was never sent.
            assert_eq!((first.kind(), first.effect()), (ErrorKind::Unreachable, Effect::None), "{first}");
            client.release(&request, SOON).unwrap();
        }
        let tombstone = format!("leasehold:{{{facade}}}:t:{}", claim.owner.to_wire());
        eventually("the release is run", || exists(&server, &tombstone));
        assert!(!exists(&server, facade), "{facade}: the acquire outlived its release");
        draw(&client, facade);
    }
}

#[test]
fn a_slow_answer_untimed_is_an_answer() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let before = draw(&client, facade);
        server.stop();
        let claim = claim(facade);
        let answer = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_secs(2));
                server.resume();
            });
            client.acquire(&claim, 4 * SOON)
        });
        assert!(granted(answer).tokens.low() > before, "{facade}");
    }
}

#[test]
fn a_late_claim_leaves_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let direct = both(&server.url());
    for ((facade, far), (_, near)) in both(&server.url_at(proxy.port())).iter().zip(&direct) {
        draw(far, facade);
        let claim = claim(facade);
        proxy.set(Fault::Hold);
        assert_eq!(far.acquire(&claim, SHORT).unwrap_err().effect(), Effect::Unknown);
        assert!(proxy.fired() > 0, "nothing was held back");
        let released = near.release(&release_of(&claim, Certainty::Unknown), SOON).unwrap();
        assert_eq!(released, Released::NotHeld);
        let before: u64 = evaluations(&server);
        proxy.heal();
        eventually("the ghost arrives", || evaluations(&server) > before);
        assert!(!exists(&server, facade), "{facade}: the ghost took the lock");

        let error = near.acquire(&claim, SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
        assert!(error.to_string().contains("given up"), "{error}");
        draw(near, facade);
        let keys: Vec<String> = server.command(&["KEYS", "leasehold:{*"]);
        for key in keys {
            let left: i64 = server.command(&["PTTL", &key]);
            assert!((20_000..=30_000).contains(&left), "a tombstone lives for {left} ms");
        }
    }
}

#[test]
fn a_late_claim_leaves_nothing_if_it_waits_behind_its_release_at_a_stopped_server() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let direct = both(&server.url());
    for ((facade, far), (_, near)) in both(&server.url_at(proxy.port())).iter().zip(&direct) {
        draw(far, facade);
        draw(near, facade);
        let (claim, before) = (claim(facade), evaluations(&server));
        proxy.set(Fault::Hold);
        let error = far.acquire(&claim, SHORT).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{facade}: {error}");
        assert!(proxy.fired() > 0, "nothing was held back");
        server.stop();
        let error = near.release(&release_of(&claim, Certainty::Unknown), SHORT).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{facade}: {error}");
        proxy.heal();
        server.resume();
        eventually("both are run", || evaluations(&server) >= before + 2);
        let tombstone = format!("leasehold:{{{facade}}}:t:{}", claim.owner.to_wire());
        assert!(exists(&server, &tombstone), "{facade}: the release was not run");
        assert!(!exists(&server, facade), "{facade}: the ghost took the lock");
    }
}

/// How many scripts the server has run.
pub(crate) fn evaluations(server: &RedisServer) -> u64 {
    let info: String = server.command(&["INFO", "commandstats"]);
    let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().unwrap())
}

#[test]
fn cut_connections_are_made_again() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    for (facade, connect) in BOTH {
        let client = connect(&server.url_at(proxy.port()));
        draw(&client, facade);
        for _ in 0..3 {
            assert!(proxy.cut() > 0, "nothing was cut");
            let claim = claim(facade);
            let effect = client.acquire(&claim, SOON).err().map(|error| {
                assert_eq!(error.kind(), ErrorKind::Unreachable, "{facade}: {error}");
                error.effect()
            });
            let released = client.release(&release_of(&claim, Certainty::Unknown), SOON).unwrap();
            // The cut may have met the next connection while it was being made: then nothing was sent, and has to be so.
            let nothing_was_held = released == Released::NotHeld;
            assert!(effect != Some(Effect::None) || nothing_was_held, "{facade}: something happened after all");
            draw(&client, facade);
        }
    }
}

#[test]
fn a_lost_reply_is_unknown_and_asking_again_finds_the_lease() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    for (after, kind) in [(AfterDrop::Cut, ErrorKind::Unreachable), (AfterDrop::Keep, ErrorKind::Timeout)] {
        for (facade, connect) in BOTH {
            let client = connect(&server.url_at(proxy.port()));
            let name = format!("{facade}:{after:?}");
            draw(&client, &name);
            let claim = claim(&name);
            proxy.set(Fault::DropReplies(after));
            let error = client.acquire(&claim, SHORT).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (kind, Effect::Unknown), "{facade}: {error}");
            assert!(proxy.fired() > 0, "no reply was dropped");
            let stored: String = server.command(&["GET", &name]);
            // No network loses single replies and continues, so the connection ends with the fault.
            proxy.cut();
            proxy.heal();
            eventually("the client is connected again", || client.fence(&some_lease(&claim), SOON));
            let lease = granted(client.acquire(&claim, SOON));
            assert!(stored.contains(&format!(":{}:", lease.tokens.high())), "other tokens than {stored}");
            assert_eq!(client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap(), Released::Released);
        }
    }
}

fn some_lease(claim: &Claim) -> Lease {
    let tokens = TokenRange::above(1, Width::ONE).unwrap();
    claim.lease(tokens)
}

#[test]
fn a_connection_that_stays_silent_is_replaced() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    for (facade, connect) in BOTH {
        let client = connect(&server.url_at(proxy.port()));
        draw(&client, facade);
        proxy.set(Fault::DropReplies(AfterDrop::Keep));
        // This connection gets no more replies; only another one helps.
        for _ in 0..6 {
            assert!(client.acquire(&claim(facade), SHORT).unwrap_err().kind().is_transient());
        }
        assert!(proxy.fired() > 0);
        proxy.heal();
        server.command::<()>(&["FLUSHALL"]);
        eventually("another connection is used", || client.acquire(&claim(&format!("{facade}:after")), SHORT));
    }
}

#[test]
fn nobody_there_is_said_at_once() {
    let mut server = RedisServer::start();
    let clients = both(&server.url());
    server.kill();
    let begun = Instant::now();
    for error in refusals(&server.url()) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{error}");
    }
    for (_, client) in &clients {
        let claim = claim("job");
        eventually("the broken connection is noticed", || {
            let error = client.acquire(&claim, SOON).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unreachable);
            error.effect() == Effect::None
        });
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_unreachable() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    for fault in [Fault::Hold, Fault::Refuse] {
        proxy.set(fault);
        for error in refusals(&server.url_at(proxy.port())) {
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{fault:?}: {error}");
            assert!(error.remedy().is_some());
        }
        assert!(proxy.fired() > 0);
        proxy.heal();
    }
}

#[test]
fn forgotten_scripts_are_loaded_again() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let flush = || server.command::<()>(&["SCRIPT", "FLUSH"]);
        flush();
        let (claim, lease) = take(&client, facade);
        flush();
        assert!(matches!(client.renew(&[lease], SOON).unwrap()[..], [Renewed::Renewed { .. }]));
        flush();
        assert_eq!(client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap(), Released::Released);
    }
}

#[test]
fn a_full_server_refuses_claims_and_takes_releases() {
    let server = RedisServer::start_with(RedisOptions::default().arguments(&["--maxmemory-policy", "noeviction"]));
    for (facade, client) in both(&server.url()) {
        let (held, lease) = take(&client, facade);
        server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        let error = client.acquire(&claim("another"), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error}");
        is_busy(client.acquire(&claim(facade), SOON));
        assert!(matches!(client.renew(&[lease], SOON).unwrap()[..], [Renewed::Renewed { .. }]));
        assert_eq!(client.release(&release_of(&held, Certainty::Unknown), SOON).unwrap(), Released::Released);
        // The tombstone is written even where there was nothing to release.
        let never = claim("never");
        assert_eq!(client.release(&release_of(&never, Certainty::Unknown), SOON).unwrap(), Released::NotHeld);
        assert!(exists(&server, &format!("leasehold:{{never}}:t:{}", never.owner.to_wire())));
        // A server other than the verified one is verified again.
        server.command::<()>(&["DEL", "leasehold:incarnation"]);
        assert_eq!(both(&server.url()).len(), 2, "connected");
        server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        draw(&client, facade);
    }
}

/// Scripts that cannot be loaded are as good as forgotten again right after that. Nothing has run, so no request fails.
#[test]
fn a_script_that_is_forgotten_twice_in_a_row_still_runs() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        server.command::<()>(&["ACL", "SETUSER", "default", "-script|load"]);
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let waiter = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        let answer = client.acquire(&waiter, SOON);
        assert!(matches!(answer, Ok(Answer::Queued { .. })), "{facade}: {answer:?}");
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let released = client.release(&release_of(&holder, Certainty::Answered), SOON);
        assert_eq!(released.unwrap(), Released::Released, "{facade}");
        server.command::<()>(&["ACL", "SETUSER", "default", "+script|load"]);
    }
}
