//! A full server evicts a lock that is held.

use redis::Connection;
use test_support::RedisOptions;

use crate::failures::by_hand::{self, ask_or_refusal, unplanned, until};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::one_redis::{OneRedis, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "eviction",
    title: "Evicted lock",
    what_happens: "The Redis of the locks is also a cache with maxmemory-policy volatile-lru. When its memory is full, it drops keys that \
                   have an expiry, and the lock of A has one.",
    locks: ["by hand: SET NX PX", "leasehold: warns when it connects, and the operator sets noeviction"],
    without,
    with,
};

const LIMITS: [&str; 4] = ["--maxmemory", "3mb", "--maxmemory-policy", "volatile-lru"];

fn start(store: Lane) -> Result<OneRedis, Failure> {
    OneRedis::start_with(RedisOptions::default().arguments(&LIMITS), store, store, "unused")
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b, cache] = story.lanes(["A", "Redis", "B", "cache"]);
    let mut server = start(redis)?;
    let (mut holder, mut other) = (server.by_hand(a)?, server.by_hand(b)?);
    holder.expect(story, redis, &set_for_long("A"), "OK")?;
    story.granted(redis, a);
    story.message(cache, redis, "SET page:1, page:2 and so on, 50 kB each", Tone::Fault);
    let mut pages = Pages::new(&server)?;
    until("the lock to be evicted", || {
        pages.add()?;
        Ok(server.ask("EXISTS lock")? == "0")
    })?;
    story.note(redis, "evicts the lock", Tone::Fault);
    story.end(redis, Kind::Stored(a));
    story.deceives(a);
    other.expect(story, redis, &set_for_long("B"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(redis, b);
    Ok(Ended::violation("A and B hold the lock at the same time: the server dropped the lock of A to make room"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b, cache] = story.lanes(["A", "Redis", "B", "cache"]);
    let mut server = start(redis)?;
    let mut holder = server.holder(a)?;
    holder.warns(story, "volatile-lru")?;
    server.ask("CONFIG SET maxmemory-policy noeviction")?;
    story.note(redis, "the operator sets noeviction", Tone::Plain);
    let mut other = server.holder(b)?;
    holder.acquire(story)?;
    let mut pages = Pages::new(&server)?;
    let mut reply = String::new();
    until("the memory to be full", || {
        reply = pages.add()?;
        Ok(reply != "OK")
    })?;
    story.refused(cache, redis, "SET page:1, page:2 and so on, 50 kB each → OOM", Tone::Fault);
    if !reply.contains("OOM") {
        return Err(unplanned("a full memory", &reply));
    }
    other.is_refused(story)?;
    holder.release(story)?;
    Ok(Ended::prevented(
        "the warning named the policy: with noeviction, the full server refused pages, and kept the lock of A",
    ))
}

/// Pages of a cache without an expiry.
struct Pages {
    connection: Connection,
    count: u32,
}

impl Pages {
    fn new(server: &OneRedis) -> Result<Self, Failure> {
        Ok(Self { connection: by_hand::connect(&server.url_at(server.port()))?, count: 0 })
    }

    /// Adds one, and returns the reply.
    fn add(&mut self) -> Result<String, Failure> {
        self.count += 1;
        ask_or_refusal(&mut self.connection, &format!("SET page:{} {}", self.count, "x".repeat(50_000)))
    }
}
