//! Random requests, sent together to one server and one by one to another: the answers and what is stored are alike.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use lock_core::{
    Answer, AsyncBackend, BackendError, Certainty, Claim, FencingToken, Holder, Lease, Mode, Note, Queueing,
    ReleaseRequest, Terms, Ttl, Width,
};
use redis::{Connection, FromRedisValue};
use test_support::{RedisOptions, RedisServer, RedisVersion};

use crate::crowd::{Ask, Crowd, Said};
use crate::promotions::replicate;
use crate::support::{SOON, claim, release_of};

/// How often requests are sent in a trace. All of it takes less time than a place in a queue lasts.
const ROUNDS: u32 = 8;
/// How many requests are sent at once at most: more than one script takes.
const AT_ONCE: usize = 80;
const LOCKS: usize = 40;

/// Where tokens come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counting {
    Counter,
    Clock,
}

struct Side {
    server: RedisServer,
    /// With a replica, tokens come from the clock.
    _replica: Option<RedisServer>,
    crowd: Crowd,
    connection: Connection,
}

impl Side {
    fn start(version: RedisVersion, counting: Counting) -> Self {
        let options = RedisOptions::default().version(version).arguments(&["--repl-diskless-sync-delay", "0"]);
        let start = || RedisServer::start_with(options.clone());
        let server = start();
        let replica = (counting == Counting::Clock).then(start);
        replica.iter().for_each(|replica| replicate(replica, &server));
        let (crowd, connection) = (Crowd::new(&server.url()), server.connection());
        Self { server, _replica: replica, crowd, connection }
    }

    fn one_by_one(&self, asks: &[Ask]) -> Vec<Said> {
        let one = async |ask: &Ask| match ask {
            Ask::Acquire(claim) => Said::Acquired(self.crowd.redis.acquire(claim, SOON).await),
            Ask::Release(request) => Said::Released(self.crowd.redis.release(request, SOON).await),
        };
        asks.iter().map(|ask| self.crowd.runtime.block_on(one(ask))).collect()
    }

    fn get<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        redis::cmd(words[0]).arg(&words[1..]).query(&mut self.connection).unwrap()
    }

    /// What is stored for a lock, without tokens and times.
    fn stored(&mut self, name: &str) -> String {
        let kind: String = self.get(&["TYPE", name]);
        let value = if kind == "string" { self.get(&["GET", name]) } else { kind };
        let left: i64 = self.get(&["PTTL", name]);
        let [queue, waiters, leases] = ["q", "w", "s"].map(|part| format!("leasehold:{{{name}}}:{part}"));
        let line: Vec<String> = self.get(&["LRANGE", &queue, "0", "-1"]);
        let mut fields = |key: &str| -> Vec<String> {
            let kind: String = self.get(&["TYPE", key]);
            let mut fields = if kind == "hash" { self.get(&["HKEYS", key]) } else { vec![kind] };
            fields.sort();
            fields
        };
        let (waiters, leases) = (fields(&waiters), fields(&leases));
        let lasts = if left > 40_000 { "long" } else { "less" };
        format!("{} {lasts}, queue {line:?}, waiters {waiters:?}, leases {leases:?}", without_tokens(&value))
    }

    /// The tombstones, none of which outlives the mark that says that there are any.
    fn tombstones(&mut self) -> Vec<String> {
        let mark: i64 = self.get(&["PTTL", "leasehold:tombstones"]);
        let mut keys: Vec<String> = self.get(&["KEYS", "leasehold:{*}:t:*"]);
        for key in &keys {
            let left: i64 = self.get(&["PTTL", key]);
            assert!(left <= mark, "{key} lives for {left} ms, and the mark for {mark} ms");
        }
        keys.sort();
        keys
    }
}

/// A value without what differs between the servers.
fn without_tokens(value: &str) -> String {
    match value.split_once('~') {
        Some((before, note)) => format!("{} {note}", before.chars().take(36).collect::<String>()),
        None => value.to_owned(),
    }
}

fn plain(said: &Said) -> String {
    let failed = |error: &BackendError| format!("{:?} {:?}", error.kind(), error.effect());
    let held = |holder: &Holder| match holder {
        Holder::Leasehold { note, .. } => without_tokens(note.to_wire()),
        Holder::Foreign => "foreign".to_owned(),
    };
    match said {
        Said::Acquired(Ok(Answer::Granted { lease, wanted, .. })) => {
            format!("granted {:?} {} {:?} {wanted}", lease.terms, width(lease), lease.slots)
        }
        Said::Acquired(Ok(Answer::Queued { position, holder, .. })) => format!("queued {position} {}", held(holder)),
        Said::Acquired(Ok(Answer::Busy { holder, .. })) => format!("busy {}", held(holder)),
        Said::Acquired(Err(error)) | Said::Released(Err(error)) => failed(error),
        Said::Released(Ok(released)) => format!("{released:?}"),
    }
}

fn width(lease: &Lease) -> u64 {
    lease.tokens.high().get() - lease.tokens.low().get() + 1
}

struct Trace {
    dice: fastrand::Rng,
    together: Side,
    alone: Side,
    claims: Vec<Claim>,
    /// Claims that are refused from now on.
    given_up: Vec<Claim>,
    /// The tokens that were granted, and to whom.
    granted: Vec<(u64, u64, String)>,
    /// The highest token of each lock.
    highest: BTreeMap<String, u64>,
    at: String,
}

impl Trace {
    fn name(&mut self) -> String {
        format!("lock {}", self.dice.usize(..LOCKS))
    }

    fn new_claim(&mut self) -> Claim {
        let name = self.name();
        let mode = match self.dice.u8(..30) {
            0 => Mode::Shared,
            1 => Mode::permits(2, 3).unwrap(),
            _ => Mode::Exclusive,
        };
        let ttl = Duration::from_secs(if self.dice.u8(..4) == 0 { 90 } else { 30 });
        let wide = if self.dice.u8(..6) == 0 { self.dice.usize(1..12) } else { 1 };
        let wide = if mode == Mode::Exclusive { wide } else { usize::try_from(mode.count()).unwrap() };
        let wants = if self.dice.u8(..3) == 0 { Queueing::Wanted } else { Queueing::Unwanted };
        let mut claim = Claim {
            terms: Terms { mode, ttl: Ttl::new(ttl).unwrap() },
            width: Width::for_waiters(wide),
            queueing: wants,
            ..claim(&name)
        };
        if self.dice.u8(..5) == 0 {
            claim.note = Note::new("there", 2, "5 6 7 another~reason").unwrap();
        }
        if self.dice.u8(..10) == 0 {
            let highest = self.granted.iter().map(|grant| grant.1).max().unwrap_or(1);
            // Not far ahead of the clock, from which tokens come once the counter is lost.
            claim.floor = FencingToken::new(highest + self.dice.u64(..100)).ok();
        }
        if self.dice.u8(..15) == 0 {
            claim.replaces = self.claims.iter().rev().find(|other| other.name == claim.name).map(|other| other.owner);
        }
        self.claims.push(claim.clone());
        claim
    }

    fn release(&mut self, claim: &Claim) -> ReleaseRequest {
        let certainty = if self.dice.u8(..12) == 0 { Certainty::Unknown } else { Certainty::Answered };
        if certainty == Certainty::Unknown {
            self.given_up.push(claim.clone());
        }
        let keeps = self.dice.u8(..20) == 0 && claim.terms.mode == Mode::Exclusive;
        ReleaseRequest { keep: keeps.then_some(Duration::from_secs(50)), ..release_of(claim, certainty) }
    }

    fn ask(&mut self) -> Ask {
        let known = self.dice.choice(&self.claims).cloned();
        let given_up = self.dice.choice(&self.given_up).cloned();
        match (self.dice.u8(..20), known, given_up) {
            (0, _, Some(claim)) | (1..4, Some(claim), _) => Ask::Acquire(claim),
            (4..12, Some(claim), _) => Ask::Release(self.release(&claim)),
            _ => Ask::Acquire(self.new_claim()),
        }
    }

    /// What other programs may do.
    fn meddle(&mut self) {
        let name = self.name();
        let waiters = format!("leasehold:{{{name}}}:w");
        let all: &[&[&str]] = match self.dice.u8(..9) {
            0 => &[&["SET", &name, "foreign", "PX", "60000"]],
            1 => &[&["SET", &waiters, "damaged"]],
            2 => &[&["DEL", &name], &["HSET", &name, "a", "b"]],
            3 => &[&["DEL", "leasehold:counter"]],
            4..6 => &[&["DEL", &name]],
            _ => return,
        };
        for side in [&self.together, &self.alone] {
            all.iter().for_each(|words| side.server.command(words));
        }
    }

    /// Tokens rise, and no two leases have the same.
    fn check_tokens(&mut self, ask: &Ask, said: &Said) {
        let (Ask::Acquire(claim), Said::Acquired(Ok(Answer::Granted { lease, .. }))) = (ask, said) else { return };
        let (low, high) = (lease.tokens.low().get(), lease.tokens.high().get());
        assert_eq!(width(lease), claim.width.get(), "{}: {lease:?}", self.at);
        assert!(claim.floor.is_none_or(|floor| low > floor.get()), "{}: {lease:?}", self.at);
        let grant = (low, high, lease.owner.to_wire());
        // It may have asked again.
        if self.granted.contains(&grant) {
            return;
        }
        let repeats = self.granted.iter().any(|other| other.0 <= high && low <= other.1);
        self.granted.push(grant);
        let highest = self.highest.insert(claim.name.to_string(), high).unwrap_or(0);
        let falls = claim.terms.mode == Mode::Exclusive && low <= highest;
        assert!(!repeats && !falls, "{}: {lease:?}, after {highest}", self.at);
    }

    /// Most claims that neither hold nor wait are not asked again.
    fn forget(&mut self, ask: &Ask, said: &Said) {
        let (Ask::Acquire(Claim { owner, .. }) | Ask::Release(ReleaseRequest { owner, .. })) = ask;
        let is_over = matches!(said, Said::Acquired(Ok(Answer::Busy { .. }) | Err(_)) | Said::Released(_));
        if is_over && self.dice.u8(..5) > 0 {
            self.claims.retain(|claim| claim.owner != *owner);
        }
    }

    fn round(&mut self) {
        self.meddle();
        let count = self.dice.usize(1..AT_ONCE);
        let asks: Vec<_> = (0..count).map(|_| self.ask()).collect();
        let (said, expected) = (self.together.crowd.ask(asks.clone()), self.alone.one_by_one(&asks));
        for ((ask, said), expected) in asks.iter().zip(&said).zip(&expected) {
            assert_eq!(plain(said), plain(expected), "{}: {ask:?}\n  {said:?}\n  {expected:?}", self.at);
            self.check_tokens(ask, said);
            self.forget(ask, said);
        }
        for lock in 0..LOCKS {
            let name = format!("lock {lock}");
            assert_eq!(self.together.stored(&name), self.alone.stored(&name), "{}: {name}", self.at);
        }
        assert_eq!(self.together.tombstones(), self.alone.tombstones(), "{}", self.at);
    }
}

fn play(seed: u64) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let version = dice.choice([RedisVersion::Installed, RedisVersion::Oldest, RedisVersion::Valkey]).unwrap();
    let counting = dice.choice([Counting::Counter, Counting::Counter, Counting::Clock]).unwrap();
    let mut trace = Trace {
        dice,
        together: Side::start(version, counting),
        alone: Side::start(version, counting),
        claims: Vec::new(),
        given_up: Vec::new(),
        granted: Vec::new(),
        highest: BTreeMap::new(),
        at: String::new(),
    };
    for round in 0..ROUNDS {
        trace.at = format!("LEASEHOLD_SEED={seed}, round {round}");
        trace.round();
    }
}

#[test]
fn requests_together_are_answered_like_requests_one_by_one() {
    let one = env::var("LEASEHOLD_SEED").map(|seed| vec![seed.parse().unwrap()]);
    let seeds: Vec<u64> = one.unwrap_or_else(|_| vec![1, 2, 3, fastrand::u64(..)]);
    seeds.into_iter().for_each(play);
}
