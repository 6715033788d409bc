//! The reply to an acquire is lost.

use std::time::Duration;

use leasehold::clock::{Clock, HostClock};
use test_support::{Fault, Proxy};

use crate::failures::by_hand::{ByHand, unplanned, until};
use crate::failures::history::{Ended, Kind, Tone};
use crate::failures::one_redis::{OneRedis, set};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "lost-reply",
    title: "Lost reply",
    what_happens: "Redis grants the lock to A, and the connection breaks before the reply arrives. A connects again and asks again. It \
                   does not know whether its first request took effect.",
    locks: ["by hand: SET NX PX, asked again", "leasehold: asks again as the same owner"],
    without,
    with,
};

/// The lease of the second variant: nobody waits until it expires.
const LONG: Duration = Duration::from_secs(30);

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis] = story.lanes(["A", "Redis"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let network = Proxy::start(server.port());
    let mut first = ByHand::connect(a, &server.url_at(network.port()))?;
    network.set(Fault::CutOneReply);
    first.send_unanswered(story, redis, &set("A"))?;
    story.begin(redis, Kind::Stored(a));
    story.lost(redis, a, "OK");
    let mut second = ByHand::connect(a, &server.url_at(network.port()))?;
    second.expect(story, redis, &set("A"), "nil")?;
    story.judge_last(Tone::Wrong);
    server.until_expired(story, a, "A")?;
    second.expect(story, redis, &set("A"), "OK")?;
    story.granted(redis, a);
    Ok(Ended::violation("A locked itself out: nobody could work until the lease expired that A had without knowing"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis] = story.lanes(["A", "Redis"]);
    let server = OneRedis::start(redis, redis, "unused")?;
    let network = Proxy::start(server.port());
    let mut holder = server.holder_for(a, network.port(), LONG)?;
    network.set(Fault::CutOneReply);
    let began = HostClock.now();
    holder.asks(story)?;
    until("the reply to be lost", || Ok(network.fired() > 0))?;
    story.lost(redis, a, "the grant");
    holder.gets_it(story)?;
    story.judge_last(Tone::Guarded);
    let took = HostClock.now().since(began);
    if took >= LONG {
        return Err(unplanned("asking again", &format!("it took {took:?}")));
    }
    Ok(Ended::prevented("A asked again as the same owner, and Redis answered with the lease that A had already"))
}
