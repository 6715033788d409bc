//! The wall clock of a server steps forward.

use std::time::Duration;

use test_support::{Machine, RedisOptions};

use crate::failures::history::{Ended, Lane, Tone};
use crate::failures::one_redis::{OneRedis, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "clock-step",
    title: "Clock step",
    what_happens: "Redis ends leases by its wall clock. A holds the lock when that clock is set ahead by a minute: by an administrator, or by \
                   a time service that corrects it in one step. At once, all leases of the server have ended, and B gets the lock. \
                   No client can notice this before its next renewal, so two holders are possible.",
    locks: ["by hand: SET NX PX", "leasehold, with a resource that checks the fencing token"],
    without,
    with,
};

const KEY: &str = "report";
/// In seconds.
const STEP: i64 = 60;
/// Longer than the scene.
const TTL: Duration = Duration::from_secs(9);

/// A server, whose clock its machine can set.
struct Server {
    redis: OneRedis,
    machine: Machine,
    lane: Lane,
}

impl Server {
    fn start(lane: Lane, report: Lane) -> Result<Self, Failure> {
        let machine = Machine::build();
        let redis = OneRedis::start_with(RedisOptions::default().on(&machine), lane, report, KEY)?;
        Ok(Self { redis, machine, lane })
    }

    /// The clock steps forward, and ends this lease.
    fn step_clock(&mut self, story: &mut Recorder, holder: Lane, lease: &str) -> Result<(), Failure> {
        self.machine.step_clock(STEP);
        story.note(self.lane, format!("its clock steps forward by {STEP} s"), Tone::Fault);
        self.redis.until_expired(story, holder, lease)
    }
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, report, b] = story.lanes(["A", "Redis", "report", "B"]);
    let mut server = Server::start(redis, report)?;
    let (mut holder, mut other) = (server.redis.by_hand(a)?, server.redis.by_hand(b)?);
    holder.expect(story, redis, &set_for_long("A"), "OK")?;
    story.granted(redis, a);
    server.step_clock(story, a, "A")?;
    story.deceives(a);
    other.expect(story, redis, &set_for_long("B"), "OK")?;
    story.granted(redis, b);
    other.expect(story, report, "SET report by-B", "OK")?;
    holder.expect(story, report, "SET report by-A", "OK")?;
    story.judge_last(Tone::Wrong);
    server.redis.resource_is("by-A")?;
    Ok(Ended::violation(
        "A and B hold the lock at the same time, and A overwrote the report of B: the lease of A should have lasted for 30 seconds",
    ))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, report, b] = story.lanes(["A", "Redis", "report", "B"]);
    let mut server = Server::start(redis, report)?;
    let port = server.redis.port();
    let mut holder = server.redis.holder_for(a, port, TTL)?;
    let mut other = server.redis.holder_for(b, port, TTL)?;
    holder.acquire(story)?;
    holder.raise(story)?;
    let lease = server.redis.owner()?;
    server.step_clock(story, a, &lease)?;
    holder.is_deceived(story)?;
    other.acquire(story)?;
    other.raise(story)?;
    other.write(story, "by-B")?;
    holder.writes_in_vain(story, "by-A")?;
    holder.learns_of_loss(story)?;
    server.redis.resource_is("by-B")?;
    Ok(Ended::prevented(
        "two holders were possible until A renewed, but the resource refused the write of A, whose token is lower",
    ))
}
