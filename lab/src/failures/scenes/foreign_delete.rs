//! A holder whose lease has expired deletes the lock of its successor.

use crate::failures::by_hand::ByHand;
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::one_redis::{OneRedis, set, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "foreign-delete",
    title: "Late release",
    what_happens: "A works for longer than its lease, which expires, and B gets the lock. A finishes and releases the lock. It is not A's \
                   any more, and C asks for it while B works.",
    locks: ["by hand: SET NX PX, then DEL", "leasehold: a release compares the owner"],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, c] = story.lanes(["A", "B", "Redis", "C"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let mut late = server.by_hand(a)?;
    late.expect(story, redis, &set("A"), "OK")?;
    story.granted(redis, a);
    delete_the_next_lock(story, &mut server, [a, b, redis, c], late)?;
    Ok(Ended::violation("A deleted the lock of B, so B and C hold it at the same time"))
}

/// The lease of A expires, and B gets the lock. A deletes it, and C gets it as well.
pub(super) fn delete_the_next_lock(
    story: &mut Recorder,
    server: &mut OneRedis,
    [a, b, redis, c]: [Lane; 4],
    mut late: ByHand,
) -> Result<(), Failure> {
    let (mut holder, mut third) = (server.by_hand(b)?, server.by_hand(c)?);
    server.until_expired(story, a, "A")?;
    story.deceives(a);
    holder.expect(story, redis, &set_for_long("B"), "OK")?;
    story.granted(redis, b);
    late.expect(story, redis, "DEL lock", "1")?;
    story.judge_last(Tone::Wrong);
    story.end(a, Kind::Believed);
    story.end(redis, Kind::Stored(b));
    story.deceives(b);
    third.expect(story, redis, &set_for_long("C"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(redis, c);
    Ok(())
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, c] = story.lanes(["A", "B", "Redis", "C"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let (mut late, mut holder, mut third) = (server.holder(a)?, server.holder(b)?, server.holder(c)?);
    late.acquire(story)?;
    let lease = server.owner()?;
    late.pause(story)?;
    server.until_expired(story, a, &lease)?;
    holder.acquire(story)?;
    late.resume(story)?;
    late.releases_late(story)?;
    third.is_refused(story)?;
    holder.release(story)?;
    Ok(Ended::prevented("the release of A reports the loss and leaves the lock to B, and C has to wait"))
}
