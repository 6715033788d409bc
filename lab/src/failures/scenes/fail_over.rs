//! A primary fails before its replica has the lock.

use leasehold::redis::{RedisConfig, declare_new};
use test_support::RedisServer;

use crate::failures::by_hand::ByHand;
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::one_redis::set_for_long;
use crate::failures::pair::{self, Pair};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "fail-over",
    title: "Failure before replication",
    what_happens: "Redis replicates after it has answered. A gets the lock from the primary, which fails before the replica has it. The \
                   replica is promoted, and knows nothing of the lock when B asks for it.",
    locks: ["by hand: SET NX PX on whatever server is the primary", "leasehold with failover=dwell"],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, primary, replica, b] = story.lanes(["A", "primary", "replica", "B"]);
    let mut pair = Pair::start([primary, replica])?;
    let (mut holder, mut other) = (ByHand::connect(a, &pair.primary.url())?, ByHand::connect(b, &pair.replica.url())?);
    pair.hold_replication(story);
    holder.expect(story, primary, &set_for_long("A"), "OK")?;
    story.granted(primary, a);
    fail_over(story, &mut pair, primary, a)?;
    story.deceives(a);
    other.expect(story, replica, &set_for_long("B"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(replica, b);
    Ok(Ended::violation("B holds the lock that A relies on: the promoted replica never had the lock of A"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, primary, replica, b] = story.lanes(["A", "primary", "replica", "B"]);
    let mut pair = Pair::start([primary, replica])?;
    let url = |server: &RedisServer| format!("{}?failover=dwell&max_ttl=2s&op_timeout=500ms", server.url());
    declare_new(&RedisConfig::from_url(&url(&pair.primary))?)?;
    pair.until_replicated()?;
    let mut holder = pair::holder(a, primary, &pair.primary, &url(&pair.primary))?;
    pair.hold_replication(story);
    holder.acquire(story)?;
    fail_over(story, &mut pair, primary, a)?;
    let mut other = pair::holder(b, replica, &pair.replica, &url(&pair.replica))?;
    other.is_refused_for_now(story)?;
    holder.loses(story)?;
    Ok(Ended::prevented(
        "the promoted server may lack leases, and grants no free lock until they have ended: B was refused, and A lost its lease in time",
    ))
}

/// The primary dies, and the replica takes its place.
fn fail_over(story: &mut Recorder, pair: &mut Pair, primary: Lane, holder: Lane) -> Result<(), Failure> {
    pair.primary.kill();
    story.note(primary, "dies (SIGKILL)", Tone::Fault);
    story.end(primary, Kind::Stored(holder));
    story.begin(primary, Kind::Down);
    pair.promote(story)
}
