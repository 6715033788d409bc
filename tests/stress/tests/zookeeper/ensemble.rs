//! Three servers, each worker's way to them, and what breaks.

use std::ops::Range;
use std::time::Duration;

use leasehold::Holder;
use leasehold::blocking::{Client, connect};
use leasehold::inspect::Query;
use stress::cast::{Cast, Mistake};
use stress::crew::Post;
use stress::nemesis::{Effect, Server};
use stress::part::Facade;
use test_support::bounds::wait_for;
use test_support::{Proxy, ZookeeperEnsemble, ZookeeperOptions};

const SERVERS: usize = 3;
/// The unit of the servers' times.
const TICK: Duration = Duration::from_millis(200);
/// How long a look may take.
const WITHIN: Duration = Duration::from_secs(2);

/// An ensemble, and who looks at its locks.
pub(crate) struct Ensemble {
    servers: ZookeeperEnsemble,
    viewer: Client,
    posts: usize,
    /// How long sessions last, in seconds.
    session: u32,
    /// The server that is away for a while.
    away: Option<usize>,
    /// The server that is suspended, perhaps beside that one: then there is no majority.
    frozen: Option<usize>,
}

/// The kinds of faults that only an ensemble has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Own {
    /// The leader is cut off from its followers, and not from its clients.
    CutLeader,
    /// A follower is suspended.
    FreezeFollower,
    /// A follower is killed, and comes back after a while.
    FollowerGone,
    /// The leader is killed, and comes back after a while.
    LeaderGone,
    /// A follower is killed, and comes back without data: it gets a snapshot from the leader.
    FollowerEmpty,
}

impl Ensemble {
    /// Starts one for sessions of so many seconds: others wait as long for what a killed worker held.
    pub(crate) fn start(session: u32) -> Self {
        let servers = ZookeeperEnsemble::start_with(ZookeeperOptions::default().volatile().tick(TICK));
        let url = url(&servers.addresses(), session);
        let viewer = wait_for("a session of the viewer", || connect(&url));
        Self { servers, viewer, posts: 0, session, away: None, frozen: None }
    }

    /// The next post, with both facades in turn: a worker behind a proxy for each server.
    pub(crate) fn post(&mut self, cast: Cast, mistake: Mistake) -> Post {
        let proxies: Vec<_> = (0..SERVERS).map(|number| Proxy::start(self.servers.server(number).port())).collect();
        let hosts: Vec<_> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
        let facade = if self.posts.is_multiple_of(2) { Facade::Async } else { Facade::Blocking };
        self.posts += 1;
        Post { facade, url: url(&hosts.join(","), self.session), proxies, cast, mistake }
    }

    /// Whether nobody holds anything.
    pub(crate) fn is_unused(&self) -> bool {
        let inspect = self.viewer.inspect().unwrap();
        inspect.list(&Query::matching("*"), WITHIN).is_ok_and(|page| page.entries.is_empty())
    }

    fn follower(&self) -> usize {
        wait_for("a server follows", || self.servers.followers().first().copied())
    }

    /// Has a follower lose its data, if the two others have it. Returns how many did.
    fn forget(&mut self) -> u64 {
        let followers = self.servers.followers();
        let [follower, _] = followers[..] else { return 0 };
        self.servers.server_mut(follower).restart_empty();
        self.servers.wait_until_serving(follower);
        1
    }

    fn kill(&mut self, number: usize) {
        self.servers.server_mut(number).kill();
        self.away = Some(number);
    }
}

fn url(addresses: &str, session: u32) -> String {
    format!("zookeeper://{addresses}/?session={session}s&tick={}ms", TICK.as_millis())
}

impl Server for Ensemble {
    type Own = Own;
    const OWN: &'static [Own] =
        &[Own::CutLeader, Own::FreezeFollower, Own::FollowerGone, Own::LeaderGone, Own::FollowerEmpty];
    /// Longer than a session.
    const SUSPENDED_FOR: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(5);

    fn notes(&self, lock: &str) -> Vec<String> {
        let shown = self.viewer.inspect().unwrap().holder(&lock.parse().unwrap(), WITHIN);
        let holders = shown.ok().flatten().map(|entry| entry.holders).unwrap_or_default();
        let note = |holder| match holder {
            Holder::Leasehold { note, .. } => Some(note.to_wire().to_owned()),
            _ => None,
        };
        holders.into_iter().filter_map(|held| note(held.holder)).collect()
    }

    fn suspend(&mut self) {
        let leader = self.servers.leader();
        self.servers.server(leader).stop();
        self.frozen = Some(leader);
    }

    fn resume(&mut self) {
        self.frozen.take().into_iter().for_each(|number| self.servers.server(number).resume());
    }

    fn restart_with_data(&mut self) {
        let leader = self.servers.leader();
        self.servers.server_mut(leader).restart_with_data();
    }

    fn begin(&mut self, own: Own) -> Effect {
        // Unless the leader is suspended, two of three go on.
        if self.away.is_some() {
            return Effect::Times(0);
        }
        match own {
            Own::CutLeader => {
                let leader = self.servers.leader();
                self.servers.cut(leader);
                self.away = Some(leader);
            }
            Own::FreezeFollower => {
                let follower = self.follower();
                self.servers.server(follower).stop();
                self.away = Some(follower);
            }
            Own::FollowerGone => self.kill(self.follower()),
            Own::LeaderGone => self.kill(self.servers.leader()),
            Own::FollowerEmpty => return Effect::Times(self.forget()),
        }
        Effect::Lasts
    }

    fn end(&mut self, own: Own) -> u64 {
        let Some(number) = self.away.take() else { return 0 };
        match own {
            Own::CutLeader => self.servers.heal(number),
            Own::FreezeFollower => self.servers.server(number).resume(),
            Own::FollowerGone | Own::LeaderGone => self.servers.server_mut(number).restart_with_data(),
            Own::FollowerEmpty => {}
        }
        1
    }
}
