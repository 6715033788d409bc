//! A request for the lock arrives after its client has given up.

use std::time::Duration;

use redis::{Connection, RedisError};
use test_support::{Fault, Proxy};

use crate::failures::by_hand::{ask, connect, fails, unplanned, until};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::one_redis::{OneRedis, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "ghosts",
    title: "Late request",
    what_happens: "The network holds up the request of A. A gives up, connects again, and releases the lock to be sure: there is nothing \
                   to release. Then the first request arrives.",
    locks: [
        "by hand: SET NX PX; after a timeout, a script that compares and deletes",
        "leasehold: a release refuses requests that arrive after it",
    ],
    without,
    with,
};

/// How long A waits for a reply by hand.
const PATIENCE: Duration = Duration::from_millis(200);
/// Deletes the lock if it is that of A.
const RELEASE: &str = "EVAL return(redis.call('GET',KEYS[1])==ARGV[1]and(redis.call('DEL',KEYS[1]))or(0)) 1 lock A";

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b] = story.lanes(["A", "Redis", "B"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let network = Proxy::start(server.port());
    let first = connect(&server.url_at(network.port()))?;
    let mut other = server.by_hand(b)?;
    network.set(Fault::Hold);
    gives_up(story, a, first)?;
    let reply = ask(&mut connect(&server.url_at(server.port()))?, RELEASE)?;
    story.message(a, redis, format!("compare and delete → {reply}"), Tone::Plain);
    network.heal();
    server.until_held()?;
    story.message(a, redis, "the SET arrives → OK", Tone::Wrong);
    story.begin(redis, Kind::Stored(a));
    other.expect(story, redis, &set_for_long("B"), "nil")?;
    story.judge_last(Tone::Wrong);
    Ok(Ended::violation(
        "nobody works, and nobody gets the lock: Redis keeps it until its ttl for A, which has given up",
    ))
}

/// Asks for the lock over a network that holds it up, and closes the connection after a while.
fn gives_up(story: &mut Recorder, client: Lane, mut connection: Connection) -> Result<(), Failure> {
    connection.set_read_timeout(Some(PATIENCE)).map_err(|error| unplanned("a timeout", &error.to_string()))?;
    story.note(client, "SET lock A NX PX is held up in the network", Tone::Fault);
    fails(&mut connection, &set_for_long("A"), RedisError::is_timeout)?;
    story.note(client, "gives up: no answer in time", Tone::Plain);
    Ok(())
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, redis, b] = story.lanes(["A", "Redis", "B"]);
    let mut server = OneRedis::start(redis, redis, "unused")?;
    let slow = Proxy::start(server.port());
    let network = Proxy::start(slow.port());
    let (mut holder, mut other) = (server.holder_through(a, network.port())?, server.holder(b)?);
    holder.acquire(story)?;
    holder.release(story)?;
    slow.set(Fault::Hold);
    network.lead_to(server.port());
    story.note(a, "try_acquire(): its request is held up in the network", Tone::Fault);
    holder.tries_in_vain(story)?;
    until("a release over a new connection", || Ok(server.ask("EXISTS leasehold:tombstones")? == "1"))?;
    story.message(a, redis, "release: refuse what comes later", Tone::Guarded);
    slow.heal();
    until("the request to be refused", || Ok(server.ask("INFO errorstats")?.contains("errorstat_GIVENUP")))?;
    story.refused(a, redis, "the request arrives → refused", Tone::Guarded);
    other.acquire(story)?;
    Ok(Ended::prevented("the release left a tombstone, so Redis refused the late request, and B got the lock at once"))
}
