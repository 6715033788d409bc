//! The wall clock of a holder is set back.

use test_support::{Fault, Machine, Proxy};

use crate::failures::by_hand::unplanned;
use crate::failures::history::{Ended, Lane, Tone};
use crate::failures::holder::{Holder, Lanes, Work};
use crate::failures::one_redis::{OneRedis, TTL, set, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;
use crate::shared::millis;

pub(super) const SCENE: Scene = Scene {
    name: "client-clock-step",
    title: "Clock step at a client",
    what_happens: "A notes when its lease will end. Then its wall clock is set back by a minute, and nothing renews its lease. Redis has \
                   another clock, by which the lease ends in time, and B gets the lock.",
    locks: [
        "by hand: SET NX PX, and a deadline by the wall clock",
        "leasehold: a deadline by a clock that nobody can set",
    ],
    without,
    with,
};

const KEY: &str = "report";
/// In seconds.
const STEP: i64 = -60;

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, report, b] = story.lanes(["A", "Redis", "report", "B"]);
    let machine = Machine::build();
    let mut server = OneRedis::start(redis, report, KEY)?;
    let (mut holder, mut other) = (server.by_hand(a)?, server.by_hand(b)?);
    let deadline = machine.date() + millis(TTL);
    holder.expect(story, redis, &set("A"), "OK")?;
    story.granted(redis, a);
    story.note(a, format!("deadline: {} ms from now", TTL.as_millis()), Tone::Plain);
    step_clock(story, &machine, a);
    server.until_expired(story, a, "A")?;
    story.deceives(a);
    other.expect(story, redis, &set_for_long("B"), "OK")?;
    story.granted(redis, b);
    other.expect(story, report, "SET report by-B", "OK")?;
    let left = deadline.saturating_sub(machine.date()) / 1000;
    if left == 0 {
        return Err(unplanned("the clock of A", "its deadline has passed"));
    }
    story.note(a, format!("its clock says: {left} s left"), Tone::Fault);
    holder.expect(story, report, "SET report by-A", "OK")?;
    story.judge_last(Tone::Wrong);
    server.resource_is("by-A")?;
    Ok(Ended::violation("A wrote because its clock said that its lease had not ended, and overwrote the report of B"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, report, b] = story.lanes(["A", "Redis", "report", "B"]);
    let machine = Machine::build();
    let mut server = OneRedis::start(redis, report, KEY)?;
    let network = Proxy::start(server.port());
    let locks = format!("{}?op_timeout=300ms", server.url_at(network.port()));
    let work = Work { locks: &locks, resource: &server.url_at(server.port()), key: KEY, ttl: TTL };
    let mut holder = Holder::start_on(&machine, a, Lanes { store: redis, resource: report }, &work)?;
    let mut other = server.holder(b)?;
    holder.acquire(story)?;
    let lease = server.owner()?;
    network.set(Fault::Refuse);
    network.cut();
    story.note(a, "its network to Redis fails", Tone::Fault);
    let before = holder.date()?;
    step_clock(story, &machine, a);
    if holder.date()? >= before {
        return Err(unplanned("the clock of A", "it was not set back"));
    }
    holder.loses(story)?;
    if server.owner()? != lease {
        return Err(unplanned("the lease of A", "it ended before its guard reported the loss"));
    }
    server.until_expired(story, a, &lease)?;
    other.acquire(story)?;
    other.write(story, "by-B")?;
    holder.notices_loss(story)?;
    server.resource_is("by-B")?;
    Ok(Ended::prevented(
        "the guard of A reported the loss before the lease had ended, whatever the wall clock said, so A did not write",
    ))
}

fn step_clock(story: &mut Recorder, machine: &Machine, lane: Lane) {
    machine.step_clock(STEP);
    story.note(lane, format!("its clock is set back by {} s", -STEP), Tone::Fault);
}
