//! A primary and its replica, with a network between them.

use std::time::Duration;

use test_support::{Fault, Proxy, RedisOptions, RedisServer};

use super::by_hand::{self, ask, ask_or_refusal, unplanned, until};
use super::history::{Lane, Tone};
use super::holder::{Holder, LOCK, Lanes, Work};
use super::recorder::Recorder;
use crate::shared::failure::Failure;

/// How long a lease lasts.
const TTL: Duration = Duration::from_millis(1500);

/// The servers, and the network over which the second one follows the first one.
pub(crate) struct Pair {
    pub(crate) primary: RedisServer,
    pub(crate) replica: RedisServer,
    replication: Proxy,
    lanes: [Lane; 2],
}

impl Pair {
    /// Starts them. The lanes are those of the primary and the replica.
    pub(crate) fn start(lanes: [Lane; 2]) -> Result<Self, Failure> {
        let undelayed =
            || RedisServer::start_with(RedisOptions::default().arguments(&["--repl-diskless-sync-delay", "0"]));
        let (primary, replica) = (undelayed(), undelayed());
        let replication = Proxy::start(primary.port());
        follow(&replica, replication.port())?;
        until_replicated(&primary, &replica)?;
        Ok(Self { primary, replica, replication, lanes })
    }

    /// Waits until the replica has all data of the primary.
    pub(crate) fn until_replicated(&self) -> Result<(), Failure> {
        until_replicated(&self.primary, &self.replica)
    }

    /// From now on, the replica gets nothing.
    pub(crate) fn hold_replication(&self, story: &mut Recorder) {
        self.replication.set(Fault::Hold);
        let [primary, replica] = self.lanes;
        story.lost(primary, replica, "replication is held up");
    }

    /// From now on, neither of them reaches the other.
    pub(crate) fn cut_off(&self, story: &mut Recorder) {
        self.replication.set(Fault::Refuse);
        self.replication.cut();
        let [primary, replica] = self.lanes;
        story.lost(primary, replica, "the network is cut");
    }

    /// The replica takes the place of the primary.
    pub(crate) fn promote(&self, story: &mut Recorder) -> Result<(), Failure> {
        ask(&mut by_hand::connect(&self.replica.url())?, "REPLICAOF NO ONE")?;
        let [_, replica] = self.lanes;
        story.note(replica, "is promoted (REPLICAOF NO ONE)", Tone::Fault);
        Ok(())
    }

    /// The first one is a replica of the second one from now on, and has all of its data.
    pub(crate) fn demote(&self, story: &mut Recorder) -> Result<(), Failure> {
        follow(&self.primary, self.replica.port())?;
        until_replicated(&self.replica, &self.primary)?;
        let [primary, replica] = self.lanes;
        story.message(primary, replica, "the network is back: REPLICAOF", Tone::Plain);
        Ok(())
    }
}

/// A client of `leasehold` that finds this server by a URL.
pub(crate) fn holder(lane: Lane, store: Lane, server: &RedisServer, url: &str) -> Result<Holder, Failure> {
    let work = Work { locks: url, resource: &server.url(), key: "unused", ttl: TTL };
    Holder::start(lane, Lanes { store, resource: store }, &work)
}

/// A server that granted the lock, or acknowledged the grant, has it.
pub(crate) fn has_the_lock(server: &RedisServer) -> Result<(), Failure> {
    let reply = ask(&mut by_hand::connect(&server.url())?, &format!("EXISTS {LOCK}"))?;
    if reply == "1" { Ok(()) } else { Err(unplanned("a server that has the lock", &reply)) }
}

fn follow(replica: &RedisServer, port: u16) -> Result<(), Failure> {
    ask(&mut by_hand::connect(&replica.url())?, &format!("REPLICAOF 127.0.0.1 {port}")).map(|_| ())
}

/// Waits until a replica has all data of its primary. While it fetches them, it refuses requests.
pub(crate) fn until_replicated(primary: &RedisServer, replica: &RedisServer) -> Result<(), Failure> {
    let (mut primary, mut replica) = (by_hand::connect(&primary.url())?, by_hand::connect(&replica.url())?);
    let mut has = |expected: &str| ask_or_refusal(&mut replica, "GET replicated").map(|reply| reply == expected);
    ask(&mut primary, "SET replicated yes")?;
    until("the replica to have the data", || has("yes"))?;
    ask(&mut primary, "DEL replicated")?;
    until("the replica to have the data", || has("nil"))
}
