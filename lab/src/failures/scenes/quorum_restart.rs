//! A node of a quorum forgets its vote, and votes again at once.

use std::time::Duration;

use leasehold::BackendError;
use leasehold::redlock::{Purpose, RedlockConfig, blocking};
use test_support::{Fault, Proxy, RedisServer};

use crate::failures::by_hand::{ByHand, unplanned};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::holder::{Holder, Lanes, Work};
use crate::failures::pair::has_the_lock;
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "quorum-restart",
    title: "A node of a quorum forgets its vote, and votes again",
    what_happens: "A has the lock from two of three independent servers; its network to the third is down. One of the two restarts without \
                   its data. Now two servers know nothing of A, and two are a majority.",
    locks: [
        "by hand: SET NX PX on a majority of three servers, as in the description of Redlock",
        "leasehold with redlock://",
    ],
    without,
    with,
};

const TTL: Duration = Duration::from_secs(10);
/// How long a pass over the nodes may take.
const WITHIN: Duration = Duration::from_secs(10);

/// Three servers; a network leads to the last one.
struct Nodes {
    servers: [RedisServer; 3],
    network: Proxy,
    lanes: [Lane; 3],
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, b] = story.lanes(["A", "node 1", "node 2", "node 3", "B"]);
    let mut nodes = Nodes::start([one, two, three]);
    for node in [0, 1] {
        nodes.vote(story, (a, "A"), node, "OK")?;
    }
    story.lost(a, three, "SET lock A");
    story.begin(a, Kind::Valid);
    nodes.restart_second(story, a);
    nodes.vote(story, (b, "B"), 0, "nil")?;
    for node in [1, 2] {
        nodes.vote(story, (b, "B"), node, "OK")?;
        story.judge_last(Tone::Wrong);
    }
    story.note(b, "has two of three", Tone::Wrong);
    story.begin(b, Kind::Valid);
    story.deceives(a);
    Ok(Ended::violation("A and B hold the lock at the same time, each with a majority: node 2 voted for both"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, b] = story.lanes(["A", "node 1", "node 2", "node 3", "B"]);
    let mut nodes = Nodes::start([one, two, three]);
    let config = RedlockConfig::from_url(&nodes.url())?;
    blocking::open(&config)?.pass(Purpose::Init, WITHIN).map_err(refused)?;
    let mut holder = nodes.holder(a)?;
    nodes.network.set(Fault::Refuse);
    nodes.network.cut();
    holder.acquire(story)?;
    let [granting @ .., _] = &nodes.servers;
    granting.iter().try_for_each(has_the_lock)?;
    story.message(a, two, "acquire() → granted", Tone::Plain);
    story.begin(two, Kind::Stored(a));
    story.lost(a, three, "acquire()");
    nodes.restart_second(story, a);
    nodes.network.heal();
    let mut other = nodes.holder(b)?;
    other.gets_no_majority(story)?;
    let report = blocking::open(&config)?.pass(Purpose::Look, WITHIN).map_err(refused)?;
    let Some(wait) = report.nodes.get(1).and_then(|node| node.votes_in) else {
        return Err(unplanned("a node that restarted", "it votes"));
    };
    story.note(two, format!("abstains for {} s", wait.as_secs()), Tone::Guarded);
    Ok(Ended::prevented(
        "the restarted node may have forgotten a vote, so it abstains until every lease that it may have granted has ended",
    ))
}

fn refused(error: BackendError) -> Failure {
    leasehold::Error::from(error).into()
}

impl Nodes {
    fn start(lanes: [Lane; 3]) -> Self {
        let servers = [RedisServer::start(), RedisServer::start(), RedisServer::start()];
        let network = Proxy::start(servers[2].port());
        Self { servers, network, lanes }
    }

    fn url(&self) -> String {
        let [one, two, _] = &self.servers;
        let ports = [one.port(), two.port(), self.network.port()].map(|port| format!("127.0.0.1:{port}"));
        format!("redlock://{}?max_ttl=20s", ports.join(","))
    }

    fn holder(&self, lane: Lane) -> Result<Holder, Failure> {
        let [store, ..] = self.lanes;
        let work = Work { locks: &self.url(), resource: &self.servers[0].url(), key: "unused", ttl: TTL };
        Holder::start(lane, Lanes { store, resource: store }, &work)
    }

    /// Asks one node for the lock, by hand.
    fn vote(&self, story: &mut Recorder, by: (Lane, &str), node: usize, expected: &str) -> Result<(), Failure> {
        let ((lane, owner), Some((server, to))) = (by, self.servers.iter().zip(self.lanes).nth(node)) else {
            return Err(unplanned("a vote", "there is no such node"));
        };
        let words = format!("SET lock {owner} NX PX {}", TTL.as_millis());
        ByHand::connect(lane, &server.url())?.expect(story, to, &words, expected)?;
        if expected == "OK" {
            story.begin(to, Kind::Stored(lane));
        }
        Ok(())
    }

    /// The second node loses its data.
    fn restart_second(&mut self, story: &mut Recorder, holder: Lane) {
        let ([_, server, _], [_, lane, _]) = (&mut self.servers, self.lanes);
        server.kill();
        story.note(lane, "dies", Tone::Fault);
        story.end(lane, Kind::Stored(holder));
        story.begin(lane, Kind::Down);
        server.restart_empty();
        story.note(lane, "is back, empty", Tone::Fault);
        story.end(lane, Kind::Down);
    }
}
