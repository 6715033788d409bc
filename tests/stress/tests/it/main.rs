//! Six processes in both facades on two locks, a lock with readers and a semaphore of one Redis, while everything breaks.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`: it determines which faults are injected in which order, and what
//! each worker does, but not how the processes interleave. `LEASEHOLD_STRESS_SECONDS` makes the run longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod redis;

use std::thread;
use std::time::{Duration, Instant};

use stress::cast::{Cast, Mistake, TTL};
use stress::crew::{Crew, Post};
use stress::nemesis::rage;
use stress::part::Facade;
use stress::run::{await_deeds, await_workers, calm_down, ground, judge, storm};
use test_support::{Proxy, RedisOptions, RedisServer};

use crate::redis::Redis;

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(8);

/// The facade of each worker, and what is special about its connection.
const CREW: [(Facade, &str); 6] = [
    (Facade::Async, ""),
    (Facade::Blocking, ""),
    (Facade::Async, ""),
    (Facade::Blocking, ""),
    (Facade::Async, "?protocol=resp2"),
    (Facade::Blocking, "?protocol=resp2"),
];

#[test]
fn turns_never_overlap_tokens_rise_and_nobody_starves() {
    let ground = ground(env!("CARGO_BIN_EXE_stress-worker"));
    let server = RedisServer::start_with(RedisOptions::default().append_only());
    let mut crew = Crew::start(ground, CREW.into_iter().map(|(facade, query)| post(&server, facade, query)).collect());
    await_workers(&crew);
    let mut redis = Redis::of(server);
    rage(&mut redis, &mut crew, storm(STORM));
    await_deeds(&crew);
    let problems = calm_down(&mut crew, &redis.losses);
    judge(crew, &problems);
    nothing_is_left(&redis.server);
}

fn post(server: &RedisServer, facade: Facade, query: &str) -> Post {
    let proxy = Proxy::start(server.port());
    let url = format!("{}{query}", server.url_at(proxy.port()));
    Post { facade, url, proxies: vec![proxy], cast: Cast::Kinds, mistake: Mistake::None }
}

/// Locks, queues and waiters are gone once nobody uses them; what outlives them does so for a ttl.
fn nothing_is_left(server: &RedisServer) {
    let deadline = Instant::now() + 10 * TTL;
    loop {
        let keys = server.keys();
        if keys.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left at the store: {keys:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
