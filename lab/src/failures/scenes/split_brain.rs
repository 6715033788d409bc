//! A primary that is cut off from its replica goes on serving the clients on its side.

use test_support::RedisServer;

use crate::failures::by_hand::ByHand;
use crate::failures::history::{Ended, Kind, Tone};
use crate::failures::one_redis::set_for_long;
use crate::failures::pair::{self, Pair};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "split-brain",
    title: "Split brain",
    what_happens: "The network between a primary and its replica is cut. The other side takes the primary for dead and promotes the \
                   replica. Clients on both sides have a primary, and each of the two grants the lock.",
    locks: ["by hand: SET NX PX on the primary that a client reaches", "leasehold with replicas=1 of one"],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, primary, replica, b] = story.lanes(["A", "primary", "replica", "B"]);
    let pair = Pair::start([primary, replica])?;
    let (mut holder, mut other) = (ByHand::connect(a, &pair.primary.url())?, ByHand::connect(b, &pair.replica.url())?);
    pair.cut_off(story);
    pair.promote(story)?;
    holder.expect(story, primary, &set_for_long("A"), "OK")?;
    story.granted(primary, a);
    other.expect(story, replica, &set_for_long("B"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(replica, b);
    Ok(Ended::violation("A and B hold the lock at the same time, each at a primary on its side of the cut"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, primary, replica, b] = story.lanes(["A", "primary", "replica", "B"]);
    let pair = Pair::start([primary, replica])?;
    let url = |server: &RedisServer| format!("{}?replicas=1&op_timeout=500ms", server.url());
    let mut holder = pair::holder(a, primary, &pair.primary, &url(&pair.primary))?;
    pair.cut_off(story);
    pair.promote(story)?;
    let mut other = pair::holder(b, replica, &pair.replica, &url(&pair.replica))?;
    holder.is_unacknowledged(story)?;
    other.is_unacknowledged(story)?;
    pair.demote(story)?;
    other.acquire(story)?;
    pair::has_the_lock(&pair.primary)?;
    story.message(replica, primary, "the grant to B", Tone::Guarded);
    story.begin(primary, Kind::Stored(b));
    Ok(Ended::prevented(
        "a grant counts once all replicas have it: nothing was granted on either side until one followed the other again",
    ))
}
