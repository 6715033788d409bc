//! Two holders are suspended one after the other, and resume together.

use crate::failures::by_hand::ByHand;
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::one_redis::{OneRedis, set, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "two-paused-holders",
    title: "Late writes of two paused holders",
    what_happens: "A machine that is short of memory suspends A and later B, each for longer than its lease. C gets the lock and writes its \
                   report. Then A and B resume at the same time, and both have a report to write.",
    locks: ["by hand: SET NX PX", "leasehold, with a resource that checks the fencing token"],
    without,
    with,
};

const KEY: &str = "report";

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, report, c] = story.lanes(["A", "B", "Redis", "report", "C"]);
    let mut server = OneRedis::start(redis, report, KEY)?;
    let [mut first, mut second, mut third] = [server.by_hand(a)?, server.by_hand(b)?, server.by_hand(c)?];
    for (holder, lane, name) in [(&mut first, a, "A"), (&mut second, b, "B")] {
        holder.expect(story, redis, &set(name), "OK")?;
        story.granted(redis, lane);
        story.suspends(lane);
        server.until_expired(story, lane, name)?;
        story.end(lane, Kind::Valid);
    }
    third.expect(story, redis, &set_for_long("C"), "OK")?;
    story.granted(redis, c);
    third.expect(story, report, "SET report by-C", "OK")?;
    [a, b].into_iter().for_each(|lane| story.resumes_deceived(lane));
    overwrite(story, report, [(&mut first, "A"), (&mut second, "B")])?;
    server.resource_is("by-B")?;
    Ok(Ended::violation(
        "A and B wrote although their leases had ended: first A overwrote the report of C, who holds the lock, and then B did",
    ))
}

fn overwrite(story: &mut Recorder, report: Lane, holders: [(&mut ByHand, &str); 2]) -> Result<(), Failure> {
    for (holder, name) in holders {
        holder.expect(story, report, &format!("SET report by-{name}"), "OK")?;
        story.judge_last(Tone::Wrong);
    }
    Ok(())
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, report, c] = story.lanes(["A", "B", "Redis", "report", "C"]);
    let mut server = OneRedis::start(redis, report, KEY)?;
    let [mut first, mut second, mut third] = [server.holder(a)?, server.holder(b)?, server.holder(c)?];
    for (holder, lane) in [(&mut first, a), (&mut second, b)] {
        holder.acquire(story)?;
        holder.raise(story)?;
        let lease = server.owner()?;
        holder.pause(story)?;
        server.until_expired(story, lane, &lease)?;
    }
    third.acquire(story)?;
    third.raise(story)?;
    third.write(story, "by-C")?;
    first.resume(story)?;
    second.resume(story)?;
    for (holder, report) in [(&mut first, "by-A"), (&mut second, "by-B")] {
        holder.writes_in_vain(story, report)?;
        holder.notices_loss(story)?;
    }
    server.resource_is("by-C")?;
    Ok(Ended::prevented(
        "the resource refused the writes of A and of B, because C had raised the fence above both tokens, and both guards report the loss",
    ))
}
