//! A primary fails before its replica has the lock.

use std::time::Duration;

use leasehold::redis::{RedisConfig, declare_new};
use redis::Connection;
use test_support::{Fault, Proxy, RedisOptions, RedisServer};

use crate::failures::by_hand::{self, ByHand, ask, until};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::holder::{Holder, Lanes, Work};
use crate::failures::one_redis::set_for_long;
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "fail-over",
    title: "A primary fails before its replica has the lock",
    what_happens: "Redis replicates after it has answered. A gets the lock from the primary, which fails before the replica has it. The \
                   replica is promoted, and knows nothing of the lock when B asks for it.",
    locks: ["by hand: SET NX PX on whatever server is the primary", "leasehold with failover=dwell"],
    without,
    with,
};

const TTL: Duration = Duration::from_millis(1500);

/// A primary and its replica, with a network between them.
struct Pair {
    primary: RedisServer,
    replica: RedisServer,
    replication: Proxy,
    lanes: [Lane; 2],
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, primary, replica, b] = story.lanes(["A", "primary", "replica", "B"]);
    let mut pair = Pair::start([primary, replica])?;
    let (mut holder, mut other) = (ByHand::connect(a, &pair.primary.url())?, ByHand::connect(b, &pair.replica.url())?);
    pair.hold_replication(story);
    holder.expect(story, primary, &set_for_long("A"), "OK")?;
    story.granted(primary, a);
    pair.fail_over(story, a)?;
    story.deceives(a);
    other.expect(story, replica, &set_for_long("B"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(replica, b);
    Ok(Ended::violation("A and B hold the lock at the same time: the promoted replica never had the lock of A"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, primary, replica, b] = story.lanes(["A", "primary", "replica", "B"]);
    let mut pair = Pair::start([primary, replica])?;
    let url = |server: &RedisServer| format!("{}?failover=dwell&max_ttl=2s&op_timeout=500ms", server.url());
    let declared = RedisConfig::from_url(&url(&pair.primary)).map_err(Failure::from)?;
    declare_new(&declared).map_err(|error| Failure::from(leasehold::Error::from(error)))?;
    pair.until_replicated()?;
    let start = |lane, store, server: &RedisServer| {
        let lanes = Lanes { store, resource: store };
        Holder::start(lane, lanes, &Work { locks: &url(server), resource: &server.url(), key: "unused", ttl: TTL })
    };
    let mut holder = start(a, primary, &pair.primary)?;
    pair.hold_replication(story);
    holder.acquire(story)?;
    pair.fail_over(story, a)?;
    let mut other = start(b, replica, &pair.replica)?;
    other.is_refused_for_now(story)?;
    holder.loses(story)?;
    Ok(Ended::prevented(
        "the promoted server may lack leases, and grants no free lock until they have ended: B was refused, and A lost its lease in time",
    ))
}

impl Pair {
    fn start(lanes: [Lane; 2]) -> Result<Self, Failure> {
        let undelayed =
            || RedisServer::start_with(RedisOptions::default().arguments(&["--repl-diskless-sync-delay", "0"]));
        let (primary, replica) = (undelayed(), undelayed());
        let replication = Proxy::start(primary.port());
        let mut connection = by_hand::connect(&replica.url())?;
        ask(&mut connection, &format!("REPLICAOF 127.0.0.1 {}", replication.port()))?;
        let pair = Self { primary, replica, replication, lanes };
        pair.until_replicated()?;
        Ok(pair)
    }

    /// Waits until the replica has all data of the primary.
    fn until_replicated(&self) -> Result<(), Failure> {
        let (mut primary, mut replica) =
            (by_hand::connect(&self.primary.url())?, by_hand::connect(&self.replica.url())?);
        ask(&mut primary, "SET replicated yes")?;
        let has = |replica: &mut Connection| ask(replica, "GET replicated").map(|reply| reply == "yes");
        until("the replica to have the data", || has(&mut replica))?;
        ask(&mut primary, "DEL replicated")?;
        until("the replica to have the data", || has(&mut replica).map(|has| !has))
    }

    /// From now on, the replica gets nothing.
    fn hold_replication(&self, story: &mut Recorder) {
        self.replication.set(Fault::Hold);
        let [primary, replica] = self.lanes;
        story.lost(primary, replica, "replication is held up");
    }

    /// The primary dies, and the replica takes its place.
    fn fail_over(&mut self, story: &mut Recorder, holder: Lane) -> Result<(), Failure> {
        let [primary, replica] = self.lanes;
        self.primary.kill();
        story.note(primary, "dies (SIGKILL)", Tone::Fault);
        story.end(primary, Kind::Stored(holder));
        story.begin(primary, Kind::Down);
        let mut connection = by_hand::connect(&self.replica.url())?;
        ask(&mut connection, "REPLICAOF NO ONE")?;
        story.note(replica, "is promoted (REPLICAOF NO ONE)", Tone::Fault);
        Ok(())
    }
}
