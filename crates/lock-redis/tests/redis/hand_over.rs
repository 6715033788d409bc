//! What it costs to hand a lock over to a waiter that shares it with others.

use std::sync::Arc;
use std::thread;

use lock_core::{Answer, Claim, Mode, Queueing, Terms, Ttl};
use lock_redis::{RedisConfig, blocking};
use test_support::RedisServer;

use crate::faults::evaluations;
use crate::support::{SOON, both, claim, eventually, granted};

fn client(server: &RedisServer) -> lock_blocking::Client {
    let redis = blocking::Redis::connect(&RedisConfig::from_url(&server.url()).unwrap()).unwrap();
    lock_blocking::Client::new(Arc::new(redis)).unwrap()
}

/// Waits with one client, frees the lock with another, and gives it back: how many scripts ran from then on.
fn requests(server: &RedisServer, name: &str, free: impl FnOnce(), take_turn: impl FnOnce() + Send) -> u64 {
    thread::scope(|scope| {
        let waiter = scope.spawn(take_turn);
        let queue = format!("leasehold:{{{name}}}:q");
        eventually("it waits", || server.command::<bool>(&["EXISTS", &queue]));
        let before = evaluations(server);
        free();
        waiter.join().unwrap();
        evaluations(server) - before
    })
}

#[test]
fn a_waiter_that_is_handed_what_it_shares_needs_no_further_request() {
    let server = RedisServer::start();
    let [holds, waits] = [client(&server), client(&server)];
    // The first wait of a client opens its channel, and then asks again.
    let first = holds.mutex("first").acquire().unwrap();
    let turn = || waits.mutex("first").acquire().unwrap().release().unwrap();
    requests(&server, "first", || first.release().unwrap(), turn);
    let permit = holds.semaphore("permit", 1).acquire().unwrap();
    let turn = || waits.semaphore("permit", 1).acquire().unwrap().release().unwrap();
    assert_eq!(requests(&server, "permit", || permit.release().unwrap(), turn), 2, "a permit");
    let writer = holds.mutex("read").acquire().unwrap();
    let turn = || waits.rw_lock("read").read().acquire().unwrap().release().unwrap();
    assert_eq!(requests(&server, "read", || writer.release().unwrap(), turn), 2, "a reader");
}

#[test]
fn a_waiter_that_shares_learns_the_last_token_that_was_drawn() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let terms = Terms { mode: Mode::permits(1, 2).unwrap(), ttl: Ttl::DEFAULT };
        let asks = || Claim { terms, ..claim(facade) };
        let leases = [(); 2].map(|()| granted(client.acquire(&asks(), SOON)));
        let last = granted(client.acquire(&claim(&format!("{facade}, another lock")), SOON));
        assert!(last.tokens.low() > leases[1].tokens.high(), "{facade}: one counter for all");
        let answer = client.acquire(&Claim { queueing: Queueing::Wanted, ..asks() }, SOON);
        let Ok(Answer::Queued { drawn, .. }) = answer else { panic!("{facade}: {answer:?}") };
        assert_eq!(drawn, Some(last.tokens.high()), "{facade}");
    }
}
