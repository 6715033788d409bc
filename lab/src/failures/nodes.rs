//! Nodes of a quorum of three, and one to take another's place. A network leads to the third one.

use std::time::Duration;

use leasehold::redlock::{Purpose, RedlockConfig, Report, blocking};
use test_support::{Fault, Proxy, RedisServer};

use super::by_hand::ByHand;
use super::history::{Kind, Lane, Tone};
use super::holder::{Holder, Lanes, Work};
use super::one_redis::set_for_long;
use super::pair::has_the_lock;
use super::recorder::Recorder;
use crate::shared::failure::Failure;

/// Longer than a scene.
const TTL: Duration = Duration::from_secs(30);
/// How long a pass over the nodes may take.
const WITHIN: Duration = Duration::from_secs(10);

/// The servers, and the network.
pub(crate) struct Nodes<const N: usize> {
    pub(crate) servers: [RedisServer; N],
    pub(crate) network: Proxy,
    lanes: [Lane; N],
}

impl<const N: usize> Nodes<N> {
    pub(crate) fn start(lanes: [Lane; N]) -> Self {
        let servers = [(); N].map(|()| RedisServer::start());
        let network = Proxy::start(servers[2].port());
        Self { servers, network, lanes }
    }

    /// The URL of a quorum of these nodes.
    pub(crate) fn url(&self, nodes: [usize; 3]) -> String {
        let port = |node: usize| if node == 2 { self.network.port() } else { self.servers[node].port() };
        let hosts = nodes.map(|node| format!("127.0.0.1:{}", port(node)));
        format!("redlock://{}?max_ttl=60s", hosts.join(","))
    }

    /// A client of a quorum.
    pub(crate) fn holder(&self, lane: Lane, url: &str) -> Result<Holder, Failure> {
        let store = self.lanes[0];
        let work = Work { locks: url, resource: &self.servers[0].url(), key: "unused", ttl: TTL };
        Holder::start(lane, Lanes { store, resource: store }, &work)
    }

    /// A client gets the lock from two of the first three nodes; its network to the third is down.
    pub(crate) fn granted_by_two(
        &self,
        story: &mut Recorder,
        client: Lane,
        holder: &mut Holder,
    ) -> Result<(), Failure> {
        self.network.set(Fault::Refuse);
        self.network.cut();
        holder.acquire(story)?;
        self.servers.iter().take(2).try_for_each(has_the_lock)?;
        story.message(client, self.lanes[1], "acquire() → granted", Tone::Plain);
        story.begin(self.lanes[1], Kind::Stored(client));
        story.lost(client, self.lanes[2], "acquire()");
        Ok(())
    }

    /// The same by hand.
    pub(crate) fn voted_by_two(&self, story: &mut Recorder, by: (Lane, &str)) -> Result<(), Failure> {
        let (client, owner) = by;
        self.vote(story, by, 0, "OK")?;
        self.vote(story, by, 1, "OK")?;
        story.lost(client, self.lanes[2], format!("SET lock {owner}"));
        story.begin(client, Kind::Valid);
        Ok(())
    }

    /// Asks one node for the lock, by hand.
    pub(crate) fn vote(
        &self,
        story: &mut Recorder,
        (client, owner): (Lane, &str),
        node: usize,
        expected: &str,
    ) -> Result<(), Failure> {
        let (server, to) = (&self.servers[node], self.lanes[node]);
        ByHand::connect(client, &server.url())?.expect(story, to, &set_for_long(owner), expected)?;
        if expected == "OK" {
            story.begin(to, Kind::Stored(client));
        }
        Ok(())
    }
}

/// Asks all nodes of a quorum.
pub(crate) fn pass(url: &str, purpose: Purpose) -> Result<Report, Failure> {
    Ok(blocking::open(&RedlockConfig::from_url(url)?)?.pass(purpose, WITHIN)?)
}
