//! A Redis as a node of a quorum, in both facades: what it is asked, what it loses, and what breaks on the way.

mod alike;
mod faults;
mod hints;
mod inspection;
mod losses;
mod order;
mod promotions;
mod requests;
mod standing;
mod together;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lock_core::node::{
    Ask, AsyncQuorumNode, BlockingQuorumNode, Epoch, Membership, NodeState, Recording, Sighting, Told, View,
};
use lock_core::{BackendError, Certainty, Claim, Fenced, FencingToken, Lease, Released, TokenRange, Width};
use lock_host::{Bridge, Bridged};
use lock_redis::RedisConfig;
use lock_redis::node::{blocking, nonblocking};
use test_support::{RedisOptions, RedisServer};

use crate::support::{SOON, claim, release_of};

/// Either facade.
type Node = Arc<dyn BlockingQuorumNode>;
type Connect = fn(&str) -> Node;

/// How to make a node of each facade.
const BOTH: [(&str, Connect); 2] = [("async", on_tokio), ("blocking", on_threads)];

/// The address of the node in these tests.
const ADDRESS: &str = "the-first-node:7001";
const OTHER: &str = "the-second-node:7001";

/// How many requests leave at once, before the others wait for each other.
const AT_ONCE: usize = 4;

/// Asks all of these at once, after a few others, so that they leave together.
async fn ask_together(node: &nonblocking::RedisNode, asks: &[Ask]) -> Vec<Result<Told, BackendError>> {
    let first: Vec<_> = (0..AT_ONCE).map(|_| Ask::Look).collect();
    let mut told = join_all(first.iter().chain(asks).map(|ask| node.ask(ask, SOON))).await;
    told.split_off(AT_ONCE)
}

fn bridged(node: nonblocking::RedisNode) -> Bridged<nonblocking::RedisNode> {
    Bridged::new(Arc::new(node), Bridge::start().unwrap())
}

fn on_tokio(url: &str) -> Node {
    Arc::new(bridged(nonblocking::RedisNode::new(&RedisConfig::from_url(url).unwrap(), ADDRESS).unwrap()))
}

fn on_threads(url: &str) -> Node {
    Arc::new(blocking::RedisNode::new(&RedisConfig::from_url(url).unwrap(), ADDRESS).unwrap())
}

const EPOCH: Epoch = Epoch::from_random(1);
const OTHER_EPOCH: Epoch = Epoch::from_random(2);

fn membership() -> Membership {
    Membership { members: vec![ADDRESS.into(), OTHER.into()], max_ttl: Duration::from_secs(300) }
}

fn mark(epoch: Epoch) -> Ask {
    Ask::Mark { epoch, membership: Arc::new(membership()) }
}

/// What is recorded of the second node, after this.
fn record(recording: Recording, keep: Duration) -> Ask {
    Ask::Record { seen: Arc::new([Sighting { member: OTHER.into(), recording }]), keep }
}

fn install(epoch: Epoch) -> Ask {
    Ask::Install { moves: 0, epoch, counter: 5, longest: Duration::from_secs(7), membership: Arc::new(membership()) }
}

#[track_caller]
fn view(told: Result<Told, BackendError>) -> View {
    match told {
        Ok(Told::View(view)) => *view,
        other => panic!("no view: {other:?}"),
    }
}

/// A server that votes, and a client of it.
struct Voter {
    server: RedisServer,
    node: Node,
    epoch: Epoch,
}

impl Voter {
    fn start(connect: Connect) -> Self {
        Self::start_with(connect, RedisOptions::default())
    }

    fn start_with(connect: Connect, options: RedisOptions) -> Self {
        Self::on(RedisServer::start_with(options), connect)
    }

    fn on(server: RedisServer, connect: Connect) -> Self {
        let node = connect(&server.url());
        let voter = Self { server, node, epoch: EPOCH };
        voter.begin(EPOCH);
        voter
    }

    /// Has the node vote in an epoch.
    #[track_caller]
    fn begin(&self, epoch: Epoch) {
        assert!(matches!(view(self.ask(&mark(epoch))).state, NodeState::Abstaining { .. }));
        assert_eq!(view(self.ask(&install(epoch))).state, NodeState::Voting(epoch));
    }

    fn ask(&self, ask: &Ask) -> Result<Told, BackendError> {
        self.node.ask(ask, SOON)
    }

    fn view(&self) -> View {
        view(self.ask(&Ask::Look))
    }

    fn acquire(&self, claim: &Claim, wish: u64) -> Result<Told, BackendError> {
        self.ask(&acquire(claim, wish, self.epoch))
    }

    /// Takes a lock for a new owner, and returns its lease.
    #[track_caller]
    fn take(&self, name: &str) -> (Claim, Lease) {
        let claim = claim(name);
        let token = granted(self.acquire(&claim, 1)).0;
        let lease = lease(&claim, token);
        (claim, lease)
    }

    #[track_caller]
    fn fence(&self, leases: &[Lease]) -> Vec<Fenced> {
        match self.ask(&fence(leases, self.epoch)) {
            Ok(Told::Fenced(answers)) => answers,
            other => panic!("not fenced: {other:?}"),
        }
    }

    #[track_caller]
    fn release(&self, claim: &Claim, certainty: Certainty) -> Released {
        match self.ask(&release(claim, certainty)) {
            Ok(Told::Released(released)) => released,
            other => panic!("not released: {other:?}"),
        }
    }

    /// What the hash of the node holds.
    fn known(&self, field: &str) -> Option<String> {
        self.server.command(&["HGET", "leasehold:node", field])
    }

    fn counter(&self) -> u64 {
        self.known("fence").unwrap().parse().unwrap()
    }

    fn set(&self, field: &str, value: u64) {
        self.server.command::<()>(&["HSET", "leasehold:node", field, &value.to_string()]);
    }

    /// The server's clock, in microseconds.
    fn clock(&self) -> u64 {
        let [seconds, micros]: [u64; 2] = self.server.command::<Vec<u64>>(&["TIME"]).try_into().unwrap();
        seconds * 1_000_000 + micros
    }

    fn left(&self, key: &str) -> i64 {
        self.server.command(&["PTTL", key])
    }

    fn value(&self, key: &str) -> Option<String> {
        self.server.command(&["GET", key])
    }
}

fn acquire(claim: &Claim, wish: u64, epoch: Epoch) -> Ask {
    Ask::Acquire { claim: Arc::new(claim.clone()), wish: token(wish), epoch }
}

fn fence(leases: &[Lease], epoch: Epoch) -> Ask {
    Ask::Fence { leases: leases.into(), epoch }
}

fn release(claim: &Claim, certainty: Certainty) -> Ask {
    Ask::Release(Arc::new(release_of(claim, certainty)))
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

/// The lease of one token.
fn lease(claim: &Claim, high: u64) -> Lease {
    let tokens = TokenRange::above(high - 1, Width::ONE).unwrap();
    claim.lease(tokens)
}

/// The token of a grant, and the clock that came with it.
#[track_caller]
fn granted(told: Result<Told, BackendError>) -> (u64, u64) {
    match told {
        Ok(Told::Granted { token, clock }) => (token.get(), clock.0),
        other => panic!("not granted: {other:?}"),
    }
}

fn tombstone(claim: &Claim) -> String {
    format!("leasehold:{{{}}}:t:{}", claim.name, claim.owner.to_wire())
}
