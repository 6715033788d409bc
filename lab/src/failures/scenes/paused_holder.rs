//! A holder is suspended for longer than its lease.

use crate::failures::history::{Ended, Kind, Tone};
use crate::failures::one_redis::{OneRedis, set, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "paused-holder",
    title: "Late write of a paused holder",
    what_happens: "A holds the lock and is about to write its report when its process is suspended: by a garbage collection, by swap, \
                   or by a move of its virtual machine. Its lease expires, and B gets the lock. When A resumes, it does not know \
                   that time has passed.",
    locks: ["by hand: SET NX PX", "leasehold, with a resource that checks the fencing token"],
    without,
    with,
};

const KEY: &str = "report";

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, report, b] = story.lanes(["A", "Redis", "report", "B"]);
    let mut redis_server = OneRedis::start(redis, report, KEY)?;
    let (mut holder, mut other) = (redis_server.by_hand(a)?, redis_server.by_hand(b)?);
    holder.expect(story, redis, &set("A"), "OK")?;
    story.granted(redis, a);
    story.suspends(a);
    redis_server.until_expired(story, a, "A")?;
    story.end(a, Kind::Valid);
    other.expect(story, redis, &set_for_long("B"), "OK")?;
    story.granted(redis, b);
    other.expect(story, report, "SET report by-B", "OK")?;
    story.resumes_deceived(a);
    holder.expect(story, report, "SET report by-A", "OK")?;
    story.judge_last(Tone::Wrong);
    redis_server.resource_is("by-A")?;
    Ok(Ended::violation("A wrote although its lease had ended, and overwrote the report of B, who holds the lock"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, report, b] = story.lanes(["A", "Redis", "report", "B"]);
    let mut redis_server = OneRedis::start(redis, report, KEY)?;
    let (mut holder, mut other) = (redis_server.holder(a)?, redis_server.holder(b)?);
    holder.acquire(story)?;
    holder.raise(story)?;
    let lease = redis_server.owner()?;
    holder.pause(story)?;
    redis_server.until_expired(story, a, &lease)?;
    other.acquire(story)?;
    other.raise(story)?;
    other.write(story, "by-B")?;
    holder.resume(story)?;
    holder.writes_in_vain(story, "by-A")?;
    holder.notices_loss(story)?;
    redis_server.resource_is("by-B")?;
    Ok(Ended::prevented(
        "the resource refused the write of A, whose token is lower, and the guard of A reports the loss",
    ))
}
