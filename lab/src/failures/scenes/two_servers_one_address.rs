//! One address leads to two servers, one after the other.

use std::time::Duration;

use test_support::{Proxy, RedisServer};

use crate::failures::by_hand::ByHand;
use crate::failures::history::{Ended, Lane, Tone};
use crate::failures::holder::{Holder, Lanes, Work};
use crate::failures::one_redis::set_for_long;
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "two-servers-one-address",
    title: "Two servers behind one address",
    what_happens: "A name in the DNS, or a load balancer, leads to another server than before, and the first one still runs. A has its \
                   connection to the first one. B connects to the same address, and reaches the second one.",
    locks: ["by hand: SET NX PX", "leasehold, and a resource that checks tokens"],
    without,
    with,
};

/// Nobody waits until a lease expires.
const TTL: Duration = Duration::from_secs(30);

/// Two servers, and the address.
struct Servers {
    second: RedisServer,
    _first: RedisServer,
    address: Proxy,
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, b] = story.lanes(["A", "server 1", "server 2", "B"]);
    let servers = Servers::start();
    let url = servers.url();
    let mut holder = ByHand::connect(a, &url)?;
    holder.expect(story, one, &set_for_long("A"), "OK")?;
    story.granted(one, a);
    servers.change(story, two);
    let mut other = ByHand::connect(b, &url)?;
    other.expect(story, two, &set_for_long("B"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(two, b);
    Ok(Ended::violation("A and B hold the lock at the same time, at two servers with one address"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, data, two, b] = story.lanes(["A", "server 1", "resource", "server 2", "B"]);
    let (servers, resource) = (Servers::start(), RedisServer::start());
    let start = |lane, store| {
        let (locks, resource) = (&servers.url(), &resource.url());
        Holder::start(lane, Lanes { store, resource: data }, &Work { locks, resource, key: "report", ttl: TTL })
    };
    let mut holder = start(a, one)?;
    holder.acquire(story)?;
    holder.raise(story)?;
    servers.change(story, two);
    let mut other = start(b, two)?;
    other.acquire(story)?;
    other.raise(story)?;
    holder.writes_in_vain(story, "A")?;
    Ok(Ended::prevented(
        "both have the lock, which no client can see, but tokens follow the clock at every server: the resource refused the write of A",
    ))
}

impl Servers {
    fn start() -> Self {
        let (first, second) = (RedisServer::start(), RedisServer::start());
        let address = Proxy::start(first.port());
        Self { second, _first: first, address }
    }

    fn url(&self) -> String {
        self.second.url_at(self.address.port())
    }

    /// From now on, the address leads to the second server.
    fn change(&self, story: &mut Recorder, second: Lane) {
        self.address.lead_to(self.second.port());
        story.note(second, "gets the address", Tone::Fault);
    }
}
