//! A quorum's list of nodes is changed at one client after the other.

use std::time::Duration;

use leasehold::redlock::{Purpose, RedlockConfig, blocking};
use test_support::{Fault, Proxy, RedisServer};

use crate::failures::by_hand::{ByHand, unplanned};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::holder::{Holder, Lanes, Work};
use crate::failures::one_redis::set_for_long;
use crate::failures::pair::has_the_lock;
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "node-list",
    title: "Clients of a quorum have different lists of nodes",
    what_happens: "Node 4 takes the place of node 1, and B has the new list of nodes already. A has the old one, and the lock from two \
                   of its three nodes; its network to the third is down. Two nodes of the new list know nothing of A.",
    locks: ["by hand: SET NX PX on a majority of the nodes that a client knows", "leasehold with redlock://"],
    without,
    with,
};

const TTL: Duration = Duration::from_secs(30);
/// How long a pass over the nodes may take.
const WITHIN: Duration = Duration::from_secs(10);

/// Four servers; a network leads to the third one.
struct Nodes {
    servers: [RedisServer; 4],
    network: Proxy,
    lanes: [Lane; 4],
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, four, b] = story.lanes(["A", "node 1", "node 2", "node 3", "node 4", "B"]);
    let nodes = Nodes::start([one, two, three, four]);
    nodes.vote(story, (a, "A"), [(0, "OK"), (1, "OK")])?;
    story.lost(a, three, "SET lock A");
    story.begin(a, Kind::Valid);
    nodes.vote(story, (b, "B"), [(1, "nil"), (2, "OK"), (3, "OK")])?;
    story.note(b, "has two of three", Tone::Wrong);
    story.begin(b, Kind::Valid);
    Ok(Ended::violation("A and B hold the lock at the same time, each with a majority of its own list"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, four, b] = story.lanes(["A", "node 1", "node 2", "node 3", "node 4", "B"]);
    let nodes = Nodes::start([one, two, three, four]);
    let [old, new] = nodes.urls();
    let config = RedlockConfig::from_url(&old)?;
    let declared = blocking::open(&config)?.pass(Purpose::Init, WITHIN);
    declared.map_err(|error| Failure::from(leasehold::Error::from(error)))?;
    let work = Work { locks: &old, resource: &nodes.servers[0].url(), key: "unused", ttl: TTL };
    let mut holder = Holder::start(a, Lanes { store: one, resource: one }, &work)?;
    nodes.network.set(Fault::Refuse);
    nodes.network.cut();
    holder.acquire(story)?;
    let [granting @ .., _, _] = &nodes.servers;
    granting.iter().try_for_each(has_the_lock)?;
    story.message(a, two, "acquire() → granted", Tone::Plain);
    story.begin(two, Kind::Stored(a));
    story.lost(a, three, "acquire()");
    nodes.network.heal();
    match leasehold::blocking::connect(&new) {
        Err(error) if error.to_string().contains("belongs to a deployment of other nodes") => {}
        other => return Err(unplanned("a client with another list", &format!("{other:?}"))),
    }
    for node in [two, three] {
        story.message(b, node, "connect() → refused: it belongs to a deployment of other nodes", Tone::Guarded);
    }
    Ok(Ended::prevented(
        "the nodes know the list of their deployment and refuse B, which has another one: only a move changes the list",
    ))
}

impl Nodes {
    fn start(lanes: [Lane; 4]) -> Self {
        let servers = [(); 4].map(|()| RedisServer::start());
        let network = Proxy::start(servers[2].port());
        Self { servers, network, lanes }
    }

    /// The URLs with the old list, and with the new one.
    fn urls(&self) -> [String; 2] {
        let [one, two, _, four] = self.servers.each_ref().map(RedisServer::port);
        let three = self.network.port();
        let url = |ports: [u16; 3]| {
            let nodes = ports.map(|port| format!("127.0.0.1:{port}"));
            format!("redlock://{}?max_ttl=60s", nodes.join(","))
        };
        [url([one, two, three]), url([two, three, four])]
    }

    /// Asks these nodes for the lock, by hand. Each has to answer like this.
    fn vote<const N: usize>(
        &self,
        story: &mut Recorder,
        (lane, owner): (Lane, &str),
        expected: [(usize, &str); N],
    ) -> Result<(), Failure> {
        for (node, answer) in expected {
            let (Some(server), Some(to)) = (self.servers.get(node), self.lanes.get(node)) else {
                return Err(unplanned("a vote", "there is no such node"));
            };
            ByHand::connect(lane, &server.url())?.expect(story, *to, &set_for_long(owner), answer)?;
            if answer == "OK" {
                story.begin(*to, Kind::Stored(lane));
            }
        }
        Ok(())
    }
}
