//! A release that compares first and deletes later.

use test_support::{Fault, Proxy};

use crate::failures::by_hand::until;
use crate::failures::history::{Ended, Tone};
use crate::failures::one_redis::{OneRedis, set};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::failures::scenes::foreign_delete::delete_the_next_lock;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "get-compare-delete",
    title: "Comparison before the deletion",
    what_happens: "A releases with care: it reads the lock, sees its own name, and deletes it. Between the two requests its lease expires, \
                   and B gets the lock.",
    locks: ["by hand: GET, compare, DEL", "leasehold: Redis compares and deletes in one script"],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, c] = story.lanes(["A", "B", "Redis", "C"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let mut late = server.by_hand(a)?;
    late.expect(story, redis, &set("A"), "OK")?;
    story.granted(redis, a);
    late.expect(story, redis, "GET lock", "A")?;
    story.note(a, "it is its own: A will delete it, but is slow", Tone::Fault);
    delete_the_next_lock(story, &mut server, [a, b, redis, c], late)?;
    Ok(Ended::violation(
        "the comparison was right and out of date: A deleted the lock of B, so B and C hold it at the same time",
    ))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, c] = story.lanes(["A", "B", "Redis", "C"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let network = Proxy::start(server.port());
    let mut late = server.holder_through(a, network.port())?;
    let (mut holder, mut third) = (server.holder(b)?, server.holder(c)?);
    late.acquire(story)?;
    let lease = server.owner()?;
    network.set(Fault::Hold);
    late.release_unanswered(story)?;
    until("the release to be held back", || Ok(network.fired() > 0))?;
    server.until_expired(story, a, &lease)?;
    holder.acquire(story)?;
    server.log_requests()?;
    network.heal();
    server.until_release_of(&lease)?;
    story.refused(a, redis, "the release arrives → not the lock of A", Tone::Guarded);
    third.is_refused(story)?;
    holder.release(story)?;
    Ok(Ended::prevented("Redis compared the owner when the late release arrived, and left the lock to B"))
}
