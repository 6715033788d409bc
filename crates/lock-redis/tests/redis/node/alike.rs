//! Random claims and releases, sent together to one node and one by one to another: the answers and what is stored are alike.

use std::env;
use std::time::Duration;

use lock_core::node::{Ask, AsyncQuorumNode, Told};
use lock_core::{BackendError, Certainty, Claim, FencingToken, Holder, Note, Queueing, Terms, Ttl, Width};
use lock_redis::RedisConfig;
use lock_redis::node::nonblocking::RedisNode;
use test_support::{RedisOptions, RedisVersion};
use tokio::runtime::{Builder, Runtime};

use super::{ADDRESS, EPOCH, OTHER_EPOCH, Voter, acquire, ask_together, on_threads, release};
use crate::support::{SOON, claim};

/// How often requests are sent in a trace.
const ROUNDS: u32 = 8;
/// More than one script takes.
const LOCKS: usize = 50;

type Answer = Result<Told, BackendError>;

struct Side {
    voter: Voter,
    node: RedisNode,
    runtime: Runtime,
}

impl Side {
    fn start(version: RedisVersion) -> Self {
        let voter = Voter::start_with(on_threads, RedisOptions::default().version(version));
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let node = RedisNode::new(&RedisConfig::from_url(&voter.server.url()).unwrap(), ADDRESS).unwrap();
        runtime.block_on(node.ask(&Ask::Look, SOON)).unwrap();
        Self { voter, node, runtime }
    }

    fn together(&self, asks: &[Ask]) -> Vec<Answer> {
        self.runtime.block_on(ask_together(&self.node, asks))
    }

    fn one_by_one(&self, asks: &[Ask]) -> Vec<Answer> {
        asks.iter().map(|ask| self.runtime.block_on(self.node.ask(ask, SOON))).collect()
    }

    /// What is stored for a lock, without times.
    fn stored(&self, name: &str) -> String {
        let server = &self.voter.server;
        let kind: String = server.command(&["TYPE", name]);
        let value = if kind == "string" { self.voter.value(name).unwrap() } else { kind };
        let value = match value.split_once('~') {
            Some((before, note)) => format!("{} {note}", before.rsplit_once(':').unwrap().0),
            None => value,
        };
        let inboxes: u32 = server.command(&["LLEN", &format!("leasehold:{{{name}}}:i")]);
        let lasts = if self.voter.left(name) > 40_000 { "long" } else { "less" };
        format!("{value} {lasts}, {inboxes} inboxes")
    }

    fn tombstones(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.voter.server.command(&["KEYS", "leasehold:{*}:t:*"]);
        keys.sort();
        keys
    }
}

fn plain(told: &Answer) -> String {
    match told {
        Ok(Told::Granted { token, .. }) => format!("granted {token}"),
        Ok(Told::Held { holder: Holder::Leasehold { tokens, note }, .. }) => format!("{tokens:?} {}", note.to_wire()),
        Ok(Told::Held { .. }) => "foreign".to_owned(),
        Ok(told) => format!("{told:?}"),
        Err(error) => format!("{:?} {:?}", error.kind(), error.effect()),
    }
}

struct Trace {
    dice: fastrand::Rng,
    together: Side,
    alone: Side,
    claims: Vec<Claim>,
    wish: u64,
    /// The tokens that were granted, and to whom.
    granted: Vec<(u64, String)>,
}

impl Trace {
    fn new_claim(&mut self, name: &str) -> Claim {
        let ttl = Duration::from_secs(self.dice.u64(0..8).saturating_sub(5) * 30 + 30);
        let wide = if self.dice.u8(..6) == 0 { self.dice.usize(1..12) } else { 1 };
        let wants = if self.dice.bool() { Queueing::Wanted } else { Queueing::Unwanted };
        let terms = Terms::exclusive(Ttl::new(ttl).unwrap());
        let mut claim = Claim { terms, width: Width::for_waiters(wide), queueing: wants, ..claim(name) };
        if self.dice.u8(..8) == 0 {
            claim.note = Note::new("there", 2, "5 6 7 another~reason").unwrap();
        }
        if self.dice.u8(..10) == 0 {
            claim.floor = FencingToken::new(self.wish + self.dice.u64(..50)).ok();
        }
        self.claims.push(claim.clone());
        claim
    }

    fn acquire(&mut self, claim: &Claim) -> Ask {
        self.wish += if self.dice.u8(..5) == 0 { self.dice.u64(..30) } else { 1 };
        let wish = if self.dice.u8(..9) == 0 { 1 } else { self.wish };
        acquire(claim, wish, if self.dice.u8(..12) == 0 { OTHER_EPOCH } else { EPOCH })
    }

    fn ask(&mut self, name: &str) -> Ask {
        let known: Vec<_> = self.claims.iter().filter(|claim| claim.name.as_str() == name).cloned().collect();
        let known = self.dice.choice(&known).cloned();
        match (self.dice.u8(..10), known) {
            (0..2, Some(claim)) => self.acquire(&claim),
            (2, Some(claim)) => release(&claim, Certainty::Unknown),
            (3..7, Some(claim)) => release(&claim, Certainty::Answered),
            _ => {
                let claim = self.new_claim(name);
                self.acquire(&claim)
            }
        }
    }

    /// What other programs may do.
    fn meddle(&mut self) {
        let name = format!("lock {}", self.dice.usize(..LOCKS));
        let all: &[&[&str]] = match self.dice.u8(..6) {
            0 => &[&["SET", &name, "foreign", "PX", "60000"]],
            1 => &[&["DEL", &name], &["HSET", &name, "a", "b"]],
            2..4 => &[&["DEL", &name]],
            _ => return,
        };
        for side in [&self.together, &self.alone] {
            all.iter().for_each(|words| side.voter.server.command(words));
        }
    }

    /// Tokens rise, unless the owner asks again.
    fn check_token(&mut self, at: &str, ask: &Ask, told: &Answer) {
        let (Ask::Acquire { claim, .. }, Ok(Told::Granted { token, .. })) = (ask, told) else { return };
        let grant = (token.get(), claim.owner.to_wire());
        if !self.granted.contains(&grant) {
            let highest = self.granted.iter().map(|(token, _)| *token).max().unwrap_or(0);
            assert!(highest + claim.width.get() <= token.get(), "{at}: {told:?}, after {highest}");
            self.granted.push(grant);
        }
    }

    /// Most claims that hold nothing are not asked again, but those that were given up are.
    fn forget(&mut self, ask: &Ask, told: &Answer) {
        let (owner, is_over) = match ask {
            Ask::Acquire { claim, .. } => (claim.owner, !matches!(told, Ok(Told::Granted { .. }))),
            Ask::Release(request) => (request.owner, request.certainty == Certainty::Answered),
            Ask::Fence { .. }
            | Ask::Look
            | Ask::Mark { .. }
            | Ask::Record { .. }
            | Ask::Install { .. }
            | Ask::Move { .. }
            | Ask::Inspect(_) => return,
        };
        if is_over && self.dice.u8(..5) > 0 {
            self.claims.retain(|claim| claim.owner != owner);
        }
    }

    fn round(&mut self, at: &str) {
        self.meddle();
        // Each lock once, so that the claims draw tokens in this order.
        let mut locks: Vec<_> = (0..LOCKS).collect();
        self.dice.shuffle(&mut locks);
        locks.truncate(self.dice.usize(1..LOCKS));
        let asks: Vec<_> = locks.iter().map(|lock| self.ask(&format!("lock {lock}"))).collect();
        let (told, expected) = (self.together.together(&asks), self.alone.one_by_one(&asks));
        for ((ask, told), expected) in asks.iter().zip(&told).zip(&expected) {
            assert_eq!(plain(told), plain(expected), "{at}: {ask:?}");
            self.check_token(at, ask, told);
            self.forget(ask, told);
        }
        for lock in 0..LOCKS {
            let name = format!("lock {lock}");
            assert_eq!(self.together.stored(&name), self.alone.stored(&name), "{at}: {name}");
        }
        for field in ["fence", "longest"] {
            assert_eq!(self.together.voter.known(field), self.alone.voter.known(field), "{at}: {field}");
        }
        assert_eq!(self.together.tombstones(), self.alone.tombstones(), "{at}");
    }
}

#[test]
fn requests_together_are_answered_like_requests_one_by_one() {
    let one = env::var("LEASEHOLD_SEED").map(|seed| vec![seed.parse().unwrap()]);
    let seeds: Vec<u64> = one.unwrap_or_else(|_| vec![1, 2, fastrand::u64(..)]);
    for seed in seeds {
        let mut dice = fastrand::Rng::with_seed(seed);
        let version = dice.choice([RedisVersion::Installed, RedisVersion::Oldest, RedisVersion::Valkey]).unwrap();
        let (together, alone) = (Side::start(version), Side::start(version));
        // The clocks differ, and no token depends on them.
        let wish = together.voter.counter().min(alone.voter.counter()) - 1_000_000;
        [&together, &alone].iter().for_each(|side| side.voter.set("fence", wish));
        let mut trace = Trace { dice, together, alone, claims: Vec::new(), wish, granted: Vec::new() };
        (0..ROUNDS).for_each(|round| trace.round(&format!("LEASEHOLD_SEED={seed}, round {round}")));
    }
}
