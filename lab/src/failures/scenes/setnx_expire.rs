//! A holder dies between setting the lock and setting its expiry.

use crate::failures::by_hand::unplanned;
use crate::failures::history::{Ended, Kind, Tone};
use crate::failures::one_redis::{OneRedis, TTL};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "setnx-expire",
    title: "Lock without an expiry",
    what_happens: "A sets the lock with one request, and would set its expiry with a second one. It dies between the two. B waits for a \
                   lock that has no holder and no end.",
    locks: ["by hand: SETNX, then EXPIRE", "leasehold: the lock and its expiry in one script"],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b] = story.lanes(["A", "Redis", "B"]);
    let server = OneRedis::start(redis, redis, "unused")?;
    let (mut dead, mut waiter) = (server.by_hand(a)?, server.by_hand(b)?);
    dead.expect(story, redis, "SETNX lock A", "1")?;
    story.begin(redis, Kind::Stored(a));
    drop(dead);
    story.note(a, "dies before it sends EXPIRE", Tone::Fault);
    story.begin(a, Kind::Down);
    waiter.expect(story, redis, "SETNX lock B", "0")?;
    std::thread::sleep(TTL);
    waiter.expect(story, redis, "SETNX lock B", "0")?;
    waiter.expect(story, redis, "PTTL lock", "-1")?;
    story.judge_last(Tone::Wrong);
    Ok(Ended::violation("the lock of a dead holder never expires: nobody gets it until an operator deletes it"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b] = story.lanes(["A", "Redis", "B"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let (mut dead, mut waiter) = (server.holder(a)?, server.holder(b)?);
    dead.acquire(story)?;
    let (lease, left) = (server.owner()?, server.ask("PTTL lock")?);
    if !left.parse().is_ok_and(|left: u64| left > 0) {
        return Err(unplanned("the expiry of the lock", &left));
    }
    story.note(redis, format!("the lock expires in {left} ms"), Tone::Guarded);
    dead.kill(story)?;
    waiter.asks(story)?;
    server.until_expired(story, a, &lease)?;
    story.judge_last(Tone::Guarded);
    waiter.gets_it(story)?;
    waiter.release(story)?;
    Ok(Ended::prevented("the lease of the dead holder expired at its ttl, and B got the lock"))
}
