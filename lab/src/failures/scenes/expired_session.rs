//! A holder is suspended for longer than its session, and works on before it hears of it.

use std::time::Duration;

use test_support::{CuratorAnswer, CuratorClaim, CuratorLock, CuratorPeer, RedisServer, ZookeeperServer, four_letter};

use crate::failures::by_hand::{ByHand, ask, connect, unplanned, until};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::holder::{Holder, LOCK, Lanes, Work};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "expired-session",
    title: "Expired session",
    what_happens: "The lock is an ephemeral node of ZooKeeper, which ends with the session of its client. A holds the lock when its process is \
                   suspended for longer than its session. ZooKeeper deletes the node, and B gets the lock. A cannot hear of that before \
                   it runs again, and then nothing makes it wait for the news.",
    locks: [
        "by hand: InterProcessMutex of Curator, and no listener for the state of the connection",
        "leasehold with zookeeper://, and a resource that checks the fencing token",
    ],
    without,
    with,
};

/// Ten ticks of the server, as `leasehold` advises.
const SESSION: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(20);

/// A server with the lock, and another one with the resource.
struct Servers {
    zookeeper: ZookeeperServer,
    redis: RedisServer,
    lanes: Lanes,
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, zookeeper, report, b] = story.lanes(["A", "ZooKeeper", "report", "B"]);
    let servers = Servers::start(Lanes { store: zookeeper, resource: report });
    let url = servers.redis.url();
    let (mut holder, mut other) = (servers.peer(), servers.peer());
    let (mut writes, mut other_writes) = (ByHand::connect(a, &url)?, ByHand::connect(b, &url)?);
    let claim = servers.acquire(story, a, &mut holder)?;
    holder.stop();
    story.note(a, "is suspended (SIGSTOP)", Tone::Fault);
    story.begin(a, Kind::Paused);
    servers.until_expired(story, a)?;
    story.end(a, Kind::Valid);
    servers.acquire(story, b, &mut other)?;
    other_writes.expect(story, report, "SET report by-B", "OK")?;
    holder.resume();
    story.note(a, "resumes (SIGCONT)", Tone::Fault);
    story.end(a, Kind::Paused);
    if !holder.is_acquired(claim) {
        return Err(unplanned("the mutex of A", "it is not acquired"));
    }
    story.note(a, "its mutex says that it is acquired", Tone::Wrong);
    story.begin(a, Kind::Believed);
    writes.expect(story, report, "SET report by-A", "OK")?;
    story.judge_last(Tone::Wrong);
    servers.ends_with(
        "by-A",
        Ended::violation(
            "the mutex of A says that it is held, although its session has expired, and A overwrote the report of B",
        ),
    )
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, zookeeper, report, b] = story.lanes(["A", "ZooKeeper", "report", "B"]);
    let servers = Servers::start(Lanes { store: zookeeper, resource: report });
    let (mut holder, mut other) = (servers.holder(a)?, servers.holder(b)?);
    holder.acquire(story)?;
    holder.raise(story)?;
    holder.pause(story)?;
    servers.until_expired(story, a)?;
    other.acquire(story)?;
    other.raise(story)?;
    other.write(story, "by-B")?;
    holder.resume(story)?;
    holder.notices_loss(story)?;
    holder.writes_in_vain(story, "by-A")?;
    servers.ends_with(
        "by-B",
        Ended::prevented(
            "the guard of A knows its deadline without a message, and the resource refused a write with its token",
        ),
    )
}

impl Servers {
    fn start(lanes: Lanes) -> Self {
        Self { zookeeper: ZookeeperServer::start(), redis: RedisServer::start(), lanes }
    }

    /// A process with Curator.
    fn peer(&self) -> CuratorPeer {
        CuratorPeer::connect(&self.zookeeper.address(), SESSION)
    }

    /// A process with Curator gets the lock.
    fn acquire(&self, story: &mut Recorder, lane: Lane, peer: &mut CuratorPeer) -> Result<CuratorClaim, Failure> {
        let claim = peer.acquire(CuratorLock::Mutex, &format!("/{LOCK}"), WAIT);
        let answer = peer.answer(claim);
        if answer != CuratorAnswer::Acquired {
            return Err(unplanned("acquire()", &format!("{answer:?}")));
        }
        story.message(lane, self.lanes.store, "acquire() → a node", Tone::Plain);
        story.granted(self.lanes.store, lane);
        Ok(claim)
    }

    /// A process with `leasehold`.
    fn holder(&self, lane: Lane) -> Result<Holder, Failure> {
        let locks = format!("zookeeper://{}?session={}s&tick=500ms", self.zookeeper.address(), SESSION.as_secs());
        Holder::start(
            lane,
            self.lanes,
            &Work { locks: &locks, resource: &self.redis.url(), key: "report", ttl: SESSION },
        )
    }

    /// Waits until the server has ended the session of the holder, and so deleted its node.
    fn until_expired(&self, story: &mut Recorder, holder: Lane) -> Result<(), Failure> {
        let node = format!("/{LOCK}/");
        until("a session to expire", || {
            let sessions = four_letter(self.zookeeper.port(), "dump");
            Ok(!sessions.is_empty() && !sessions.contains(&node))
        })?;
        story.note(self.lanes.store, "the session of A expires", Tone::Fault);
        story.end(self.lanes.store, Kind::Stored(holder));
        Ok(())
    }

    /// The end of the scene, if the report is this one.
    fn ends_with(&self, expected: &str, ended: Ended) -> Result<Ended, Failure> {
        let report = ask(&mut connect(&self.redis.url())?, "GET report")?;
        if report == expected { Ok(ended) } else { Err(unplanned("the report", &report)) }
    }
}
