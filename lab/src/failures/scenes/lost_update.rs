//! A fence that is checked on writes only, and an update that was computed from an old read.

use crate::failures::by_hand::unplanned;
use crate::failures::history::{Ended, Tone};
use crate::failures::holder::{Holder, Written};
use crate::failures::one_redis::OneRedis;
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "lost-update",
    title: "Fence raised by writes only",
    what_happens: "The account has 100. A pays in 50 and B pays in 20, each under the lock, and the account refuses writes with a token \
                   lower than one it has seen. A is suspended between its read and its write. B reads before A writes, and writes \
                   afterwards.",
    locks: [
        "leasehold, and tokens that are checked by writes only",
        "leasehold, and a fence that is raised before the read",
    ],
    without,
    with,
};

/// What a holder does before it reads.
type Before = fn(&mut Holder, &mut Recorder) -> Result<(), Failure>;

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    match play(story, |_, _| Ok(()))? {
        (Written::Accepted, "120") => {
            story.judge_last(Tone::Wrong);
            Ok(Ended::violation("the account has 120 and not 170: the 50 of A are lost, and nobody saw an error"))
        }
        (_, balance) => Err(unplanned("the balance", balance)),
    }
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    match play(story, Holder::raise)? {
        (Written::Refused, "120") => Ok(Ended::prevented(
            "the account refused the write of A, because B had raised the fence before it read; A knows, and can pay in again",
        )),
        (_, balance) => Err(unplanned("the balance", balance)),
    }
}

/// What became of the write of A, and the balance in the end.
fn play(story: &mut Recorder, before: Before) -> Result<(Written, &'static str), Failure> {
    let [a, redis, account, b] = story.lanes(["A", "Redis", "account", "B"]);
    let mut server = OneRedis::start(redis, account, "account")?;
    server.ask("SET account 100")?;
    let (mut first, mut second) = (server.holder(a)?, server.holder(b)?);
    first.acquire(story)?;
    before(&mut first, story)?;
    first.read(story)?;
    let lease = server.owner()?;
    first.pause(story)?;
    server.until_expired(story, a, &lease)?;
    second.acquire(story)?;
    before(&mut second, story)?;
    second.read(story)?;
    first.resume(story)?;
    let late = first.write(story, "150")?;
    let in_time = second.write(story, "120")?;
    match (in_time, server.ask("GET account")?.as_str()) {
        (Written::Accepted, "120") => Ok((late, "120")),
        (_, balance) => Err(unplanned("the balance", balance)),
    }
}
