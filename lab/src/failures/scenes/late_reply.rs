//! The reply to an acquire arrives after the lease has ended.

use std::thread;
use std::time::Duration;

use test_support::{Fault, Proxy};

use crate::failures::by_hand::{ask, connect, unplanned};
use crate::failures::history::{Ended, Kind, Tone};
use crate::failures::one_redis::{OneRedis, TTL, set, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "late-reply",
    title: "Late reply",
    what_happens: "The network of A is slow: a request, and then its reply, take longer than a lease. When A reads that it has the lock, \
                   the lock has expired, and B has it.",
    locks: ["by hand: SET NX PX, and the lease counts from the reply", "leasehold: the lease counts from the request"],
    without,
    with,
};

/// How long a message takes.
const DELAY: Duration = TTL.saturating_add(Duration::from_millis(300));

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b] = story.lanes(["A", "Redis", "B"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let network = Proxy::start(server.port());
    let mut slow = connect(&server.url_at(network.port()))?;
    let mut other = server.by_hand(b)?;
    network.set(Fault::Delay(DELAY));
    story.note(a, "sends SET over a slow network", Tone::Fault);
    let words = set("A");
    let reply = thread::spawn(move || ask(&mut slow, &words));
    server.until_held()?;
    story.message(a, redis, set("A"), Tone::Plain);
    story.begin(redis, Kind::Stored(a));
    server.until_expired(story, a, "A")?;
    other.expect(story, redis, &set_for_long("B"), "OK")?;
    story.granted(redis, b);
    match reply.join().map_err(|_| unplanned("the reply", "a panic"))??.as_str() {
        "OK" => story.message(redis, a, "OK", Tone::Wrong),
        other => return Err(unplanned("the reply", other)),
    }
    story.note(a, "works as the holder", Tone::Wrong);
    story.begin(a, Kind::Believed);
    Ok(Ended::violation(
        "A believes that its lease has just begun, but it ended before the reply arrived, and B has the lock",
    ))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b] = story.lanes(["A", "Redis", "B"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let network = Proxy::start(server.port());
    let (mut slow, mut other) = (server.holder_through(a, network.port())?, server.holder(b)?);
    network.set(Fault::Delay(DELAY));
    story.note(a, "calls try_acquire() over a slow network", Tone::Fault);
    slow.tries_in_vain(story)?;
    server.until_held()?;
    story.message(a, redis, "the request arrives → granted", Tone::Plain);
    story.begin(redis, Kind::Stored(a));
    let lease = server.owner()?;
    other.asks(story)?;
    server.until_expired(story, a, &lease)?;
    other.gets_it(story)?;
    Ok(Ended::prevented(
        "A was told that it had no lock: a request gives up after a third of the ttl at most, so no reply is used that late",
    ))
}
