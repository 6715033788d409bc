//! Five real servers.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use leasehold::backend::node::{NodeState, View};
use leasehold::redlock::Purpose;
use leasehold::redlock::blocking::Quorum;
use stress::cast::{Cast, Mistake, TTL};
use stress::connect::observer;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{Proxy, RedisOptions, RedisServer};

/// How many there are ...
pub(crate) const NODES: usize = 5;
/// ... and how many may be away, or have forgotten and not voted since.
pub(crate) const MINORITY: usize = 2;
/// The longest ttl of the deployment: short, so that dwells end within a test.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(3);
/// How long a check of one node may take.
const GLANCE: Duration = Duration::from_millis(200);
/// How long it may take until all nodes vote, while clients keep connecting.
const VOTE_WITHIN: Duration = Duration::from_secs(15);
/// How long a node keeps an inbox that waits for messages.
const INBOX_MAX: Duration = Duration::from_secs(10);
/// How long a claim that was given up is remembered.
const TOMBSTONE_LIFE: Duration = Duration::from_secs(10);
/// How long it is remembered when a node began to abstain.
const NOTE_MAX: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The servers, with a client that reaches them without a proxy.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    observer: Quorum,
}

/// One server.
pub(crate) struct Node {
    pub(crate) server: RedisServer,
    pub(crate) state: State,
}

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Runs,
    Frozen,
    Killed,
}

impl Nodes {
    /// Starts them and founds their deployment.
    pub(crate) fn start() -> Self {
        // Writes survive a killed server; only a crash of the machine would need more.
        let options = RedisOptions::default().arguments(&["--appendonly", "yes", "--appendfsync", "no"]);
        let node = |_| Node { server: RedisServer::start_with(options.clone()), state: State::Runs };
        let nodes: Vec<Node> = (0..NODES).map(node).collect();
        let observer = observer(&url(nodes.iter().map(|node| node.server.url()))).unwrap();
        observer.pass(Purpose::Init, GLANCE * 10).unwrap();
        Self { nodes, observer }
    }

    /// A post from which each server is reached through a proxy; `query` is what is special about its connections.
    pub(crate) fn post(&self, facade: Facade, query: &str) -> Post {
        let proxies: Vec<Proxy> = self.nodes.iter().map(|node| Proxy::start(node.server.port())).collect();
        let address = |(node, proxy): (&Node, &Proxy)| format!("{}{query}", node.server.url_at(proxy.port()));
        let url = url(self.nodes.iter().zip(&proxies).map(address));
        Post { facade, url, proxies, cast: Cast::Locks, mistake: Mistake::None }
    }

    pub(crate) fn node(&mut self, node: usize) -> &mut Node {
        &mut self.nodes[node]
    }

    pub(crate) fn running(&self) -> Vec<usize> {
        (0..NODES).filter(|node| self.nodes[*node].state == State::Runs).collect()
    }

    /// The nodes that are seen to vote.
    pub(crate) fn voting(&self) -> BTreeSet<usize> {
        let report = self.observer.pass(Purpose::Look, GLANCE).unwrap();
        let votes = |view: &View| matches!(view.state, NodeState::Voting(_));
        (0..NODES).filter(|node| report.nodes[*node].view.as_ref().is_ok_and(votes)).collect()
    }

    /// Waits until all vote again.
    pub(crate) fn await_votes(&self) {
        let deadline = Instant::now() + VOTE_WITHIN;
        while self.voting().len() < NODES {
            assert!(Instant::now() < deadline, "only {:?} vote", self.voting());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every key expires in its time, and locks are gone once nobody uses them.
    pub(crate) fn nothing_is_left(&self) {
        let deadline = Instant::now() + 10 * TTL;
        for node in &self.nodes {
            while node.has_a_lock() {
                assert!(Instant::now() < deadline, "locks are left at port {}", node.server.port());
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn url(nodes: impl Iterator<Item = String>) -> String {
    let nodes: String = nodes.map(|node| format!("node={node}&")).collect();
    format!("redlock://?{nodes}max_ttl={}s", MAX_TTL.as_secs())
}

impl Node {
    pub(crate) fn freeze(&mut self) {
        self.server.stop();
        self.state = State::Frozen;
    }

    pub(crate) fn thaw(&mut self) {
        self.server.resume();
        self.state = State::Runs;
    }

    pub(crate) fn kill(&mut self) {
        self.server.kill();
        self.state = State::Killed;
    }

    pub(crate) fn come_back(&mut self) {
        self.server.restart_with_data();
        self.state = State::Runs;
    }

    fn has_a_lock(&self) -> bool {
        let keys: Vec<String> = self.server.command(&["KEYS", "*"]);
        let kinds: Vec<Kind> = keys.iter().filter_map(|key| self.kind(key)).collect();
        kinds.contains(&Kind::Lock)
    }

    /// The kind of a key that expires; `None` if it has expired meanwhile.
    fn kind(&self, key: &str) -> Option<Kind> {
        let kind = Kind::of(key)?;
        let left: i64 = self.server.command(&["PTTL", key]);
        assert_ne!(left, -1, "{key} would never expire");
        let left = Duration::from_millis(u64::try_from(left).ok()?);
        assert!(left <= kind.life(), "{key} would stay for {left:?}");
        Some(kind)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lock,
    Inboxes,
    Tombstone,
    Note,
}

impl Kind {
    /// The kind of a key; `None` for the key that never expires.
    fn of(key: &str) -> Option<Self> {
        match key.strip_prefix("leasehold:") {
            None => Some(Self::Lock),
            Some("node") => None,
            Some(own) if own.starts_with("seen:") => Some(Self::Note),
            Some(own) if own.ends_with(":i") => Some(Self::Inboxes),
            Some(_) => Some(Self::Tombstone),
        }
    }

    /// How long one lives at most.
    fn life(self) -> Duration {
        match self {
            Self::Lock => TTL,
            Self::Inboxes => INBOX_MAX,
            Self::Tombstone => TOMBSTONE_LIFE,
            Self::Note => NOTE_MAX,
        }
    }
}
