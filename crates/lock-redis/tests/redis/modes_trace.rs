//! Random requests of all modes, answered by the scripts and by the reference store: both say the same.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::inspect::Revoked;
use lock_core::limit::{Act, Request};
use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Fairness, Fenced, FencingToken, Holder, Lease, Limit,
    Mode, Moment, Queueing, ReleaseRequest, Released, Renewed, Terms, TokenRange, Ttl, Width,
};
use lock_memory::store::{ClientId, Store};
use lock_redis::RedisConfig;
use test_support::{RedisOptions, RedisServer, RedisVersion};

use crate::support::{Client, SOON, both, claim, operator, release_of};

/// How many traces there are, and how many steps each has.
const TRACES: u64 = 6;
const STEPS: u32 = 150;
/// How many claims are known at a time.
const KNOWN: usize = 14;
/// A ttl that ends during a trace, and one that does not.
const BRIEF: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);
/// By how much the two sides may differ about the time that is left.
const ABOUT: Duration = Duration::from_secs(2);

const CLIENT: ClientId = ClientId::new(1);

/// Both sides of a trace.
struct Play {
    client: Client,
    inspect: lock_redis::blocking::Redis,
    store: Store,
    began: Instant,
    dice: fastrand::Rng,
    name: String,
    claims: Vec<Claim>,
    leases: Vec<Lease>,
    /// By how much the server's tokens are higher than those of the reference store.
    ahead: Option<u64>,
    at: String,
}

impl Play {
    fn now(&self) -> Moment {
        Moment::ORIGIN + self.began.elapsed()
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.dice.usize(..of.len())].clone())
    }

    fn mode(&mut self) -> Mode {
        let count = self.dice.u32(1..=3);
        let permits = Mode::permits(count, 3).unwrap();
        match self.dice.u8(..20) {
            0 => Mode::permits(1, 4).unwrap(),
            _ if self.name.starts_with("semaphore") => permits,
            1 => permits,
            2..8 => Mode::Exclusive,
            _ => Mode::Shared,
        }
    }

    fn new_claim(&mut self, ttl: Duration) -> Claim {
        let mode = self.mode();
        let width = Width::for_waiters(usize::try_from(mode.count()).unwrap());
        let queueing = if self.dice.bool() { Queueing::Wanted } else { Queueing::Unwanted };
        let fairness = if self.dice.u8(..4) == 0 { Fairness::Barging } else { Fairness::Fair };
        let terms = Terms { mode, ttl: Ttl::new(ttl).unwrap() };
        let claim = Claim { terms, width, queueing, fairness, ..claim(&self.name) };
        self.claims.push(claim.clone());
        if self.claims.len() > KNOWN {
            let forgotten = self.claims.remove(0);
            self.release(&forgotten, Certainty::Answered);
        }
        claim
    }

    /// What the server says in the tokens of the reference store.
    fn tokens(&mut self, theirs: TokenRange, expected: TokenRange) -> TokenRange {
        let ahead = *self.ahead.get_or_insert(theirs.low().get() - expected.low().get());
        let token = |token: FencingToken| FencingToken::new(token.get() - ahead).unwrap();
        TokenRange::new(token(theirs.low()), token(theirs.high())).unwrap()
    }

    fn acquire(&mut self, claim: &Claim) {
        let answer = self.client.acquire(claim, SOON);
        let now = self.now();
        let expected = self.store.acquire(now, CLIENT, claim);
        let at = format!("{}: {claim:?}\n  was answered {answer:?}\n  instead of {expected:?}", self.at);
        match (answer, expected) {
            (Err(answer), Err(expected)) => assert_eq!(said(&answer), said(&expected), "{at}"),
            (Ok(answer), Ok(expected)) => self.same_answer(now, claim, answer, expected, &at),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => panic!("{at}"),
        }
    }

    fn same_answer(&mut self, now: Moment, claim: &Claim, answer: Answer, expected: Answer, at: &str) {
        match (answer, expected) {
            (Answer::Granted { lease, wanted, .. }, Answer::Granted { lease: expected, wanted: waited, .. }) => {
                let tokens = self.tokens(lease.tokens, expected.tokens);
                assert_eq!(Lease { tokens, ..lease.clone() }, expected, "{at}");
                // An exclusive grant does not say who waits.
                assert!(wanted == waited || claim.terms.mode == Mode::Exclusive, "{at}");
                self.leases.retain(|other| other.owner != lease.owner);
                self.leases.push(lease);
            }
            (
                Answer::Queued { position, remaining, valid_for, holder, .. },
                Answer::Queued { position: place, remaining: left, valid_for: place_for, .. },
            ) => {
                assert!(position >= place && (position == 1) == (place == 1) && valid_for == place_for, "{at}");
                self.same_holder(now, holder, remaining, left, at);
            }
            (Answer::Busy { remaining, holder, .. }, Answer::Busy { remaining: left, .. }) => {
                self.same_holder(now, holder, remaining, left, at);
            }
            (_, _) => panic!("{at}"),
        }
    }

    fn same_holder(
        &mut self,
        now: Moment,
        holder: Holder,
        remaining: Option<Duration>,
        left: Option<Duration>,
        at: &str,
    ) {
        let Holder::Leasehold { tokens, .. } = holder else { panic!("{at}") };
        let tokens = self.tokens(tokens, tokens);
        let name = self.name.parse().unwrap();
        assert!(self.store.holds(now, &name).any(|hold| hold.tokens == tokens), "{at}");
        match (remaining, left) {
            (Some(remaining), Some(left)) => assert!(remaining.abs_diff(left) < ABOUT, "{at}"),
            (None, None) => {}
            (_, _) => panic!("{at}"),
        }
    }

    fn release(&mut self, claim: &Claim, certainty: Certainty) {
        self.release_by(claim, &release_of(claim, certainty));
    }

    /// Releases a hold so that nobody can have the lock for a while.
    fn keep(&mut self, claim: &Claim, certainty: Certainty, time: Duration) {
        self.release_by(claim, &ReleaseRequest { keep: Some(time), ..release_of(claim, certainty) });
    }

    fn release_by(&mut self, claim: &Claim, request: &ReleaseRequest) {
        let released = self.client.release(request, SOON);
        let now = self.now();
        let (released, expected) = match (released, self.store.release(now, request)) {
            (Ok(released), Ok(expected)) => (released, expected),
            (Err(error), Err(expected)) => return assert_eq!(said(&error), said(&expected), "{}: {claim:?}", self.at),
            (released, expected) => panic!("{}: {claim:?}: {released:?}, not {expected:?}", self.at),
        };
        // A place that has expired may still be there to be left.
        let had_expired = (released, expected) == (Released::Left, Released::NotHeld);
        let may_expire = claim.terms.ttl.get() == BRIEF;
        assert!(
            released == expected || had_expired && may_expire,
            "{}: {claim:?}: {released:?}, not {expected:?}",
            self.at
        );
    }

    /// The same leases in the tokens of the reference store.
    fn expected(&mut self, leases: &[Lease]) -> Vec<Lease> {
        leases.iter().map(|lease| Lease { tokens: self.tokens(lease.tokens, lease.tokens), ..lease.clone() }).collect()
    }

    fn renew(&mut self) {
        let leases = self.leases.clone();
        let renewed = self.client.renew(&leases, SOON).unwrap();
        let (expected, now) = (self.expected(&leases), self.now());
        let expected = self.store.renew(now, &expected);
        for ((lease, renewed), expected) in leases.iter().zip(renewed).zip(expected) {
            let at = format!("{}: {lease:?}: {renewed:?}, not {expected:?}", self.at);
            match (renewed, expected) {
                (Renewed::Renewed { .. }, Renewed::Renewed { .. }) if lease.terms.mode == Mode::Exclusive => {}
                (renewed, expected) => assert_eq!(renewed, expected, "{at}"),
            }
        }
    }

    fn fence(&mut self, lease: &Lease) {
        let fenced = self.client.fence(lease, SOON).unwrap();
        let (expected, now) = (self.expected(std::slice::from_ref(lease)), self.now());
        let fenced = match fenced {
            Fenced::Higher(token) => {
                let tokens = TokenRange::new(token, token).unwrap();
                Fenced::Higher(self.tokens(tokens, tokens).low())
            }
            Fenced::Acknowledged | Fenced::NotHeld => fenced,
        };
        assert_eq!(fenced, self.store.fence(now, &expected[0]), "{}: fence of {lease:?}", self.at);
    }

    fn revoke(&mut self, lease: &Lease) {
        let revoked: Revoked = self.inspect.revoke(&lease.name, lease.tokens.high(), &operator(), SOON).unwrap();
        let (expected, now) = (self.expected(std::slice::from_ref(lease)), self.now());
        let expected = self.store.revoke(now, &lease.name, expected[0].tokens.high(), &operator());
        assert_eq!(revoked, expected, "{}: {lease:?}", self.at);
    }

    fn set_limit(&mut self) {
        let (known, new) = (self.dice.u32(3..=4), self.dice.u32(1..=5));
        let limit = |number| Limit::new(number).unwrap();
        for act in [Act::Set(limit(new)), Act::Look] {
            let request = Request { name: self.name.parse().unwrap(), known: limit(known), act };
            let usage = self.inspect.limit(&request, SOON);
            let expected = self.store.limit(self.now(), &request);
            let at = format!("{}: {request:?}: {usage:?}, not {expected:?}", self.at);
            assert_eq!(usage.map_err(|error| said(&error)), expected.map_err(|error| said(&error)), "{at}");
        }
    }

    fn step(&mut self) {
        let (claims, leases) = (self.claims.clone(), self.leases.clone());
        match (self.dice.u8(..42), self.pick(&claims), self.pick(&leases)) {
            (0..12, ..) | (_, None, _) => {
                let claim = self.new_claim(LONG);
                self.acquire(&claim);
            }
            (12..18, Some(claim), _) => self.acquire(&claim),
            // An owner that left the queue, or whose place has expired, may get its old place back. So none comes back.
            (18..20, Some(claim), _) => {
                self.acquire(&Claim { queueing: Queueing::Unwanted, ..claim.clone() });
                self.claims.retain(|other| other.owner != claim.owner);
            }
            (20 | 21, Some(claim), _) => {
                let is_long = claim.terms.ttl.get() == LONG;
                let certainty = if is_long && self.dice.bool() { Certainty::Unknown } else { Certainty::Answered };
                self.keep(&claim, certainty, LONG);
                let again = LONG / self.dice.u32(1..4);
                self.keep(&claim, certainty, again);
            }
            (22, Some(claim), _) => {
                self.keep(&claim, Certainty::Answered, BRIEF);
                thread::sleep(BRIEF + BRIEF / 2);
            }
            (23..26, Some(claim), _) => {
                self.release(&claim, Certainty::Answered);
                self.claims.retain(|other| other.owner != claim.owner);
            }
            // Only the tombstones of long leases last equally long on both sides.
            (26..30, Some(claim), _) if claim.terms.ttl.get() == LONG => self.release(&claim, Certainty::Unknown),
            (30..34, _, Some(lease)) => {
                let claim = Claim { replaces: Some(lease.owner), queueing: Queueing::Unwanted, ..self.new_claim(LONG) };
                self.acquire(&claim);
                self.acquire(&claim);
            }
            (34, _, Some(lease)) => self.revoke(&lease),
            (35, ..) => {
                for _ in 0..self.dice.u8(1..4) {
                    let claim = self.new_claim(BRIEF);
                    self.acquire(&claim);
                }
                thread::sleep(BRIEF + BRIEF / 2);
                self.claims.retain(|claim| claim.queueing == Queueing::Unwanted || claim.terms.ttl.get() == LONG);
            }
            (36..38, _, Some(lease)) => self.fence(&lease),
            (38..40, _, Some(_)) => self.renew(),
            (40.., ..) => self.set_limit(),
            (_, Some(_), _) => {}
        }
    }
}

/// What an error says, but for the name of the store.
fn said(error: &BackendError) -> (lock_core::ErrorKind, lock_core::Effect, String) {
    let text = error.gist();
    let text = text.split_once(": ").map_or(text.as_str(), |(_, text)| text).to_owned();
    (error.kind(), error.effect(), text.split(';').next().unwrap_or_default().to_owned())
}

#[test]
fn the_scripts_say_what_the_reference_store_says() {
    play_on(&RedisServer::start());
}

#[test]
fn the_scripts_say_the_same_on_the_oldest_server() {
    play_on(&RedisServer::start_with(RedisOptions::default().version(RedisVersion::Oldest)));
}

fn play_on(server: &RedisServer) {
    let one = env::var("LEASEHOLD_SEED").map(|seed| vec![seed.parse().unwrap()]);
    let seeds: Vec<u64> = one.unwrap_or_else(|_| (0..TRACES).collect());
    let inspect = || lock_redis::blocking::Redis::connect(&RedisConfig::from_url(&server.url()).unwrap()).unwrap();
    for seed in seeds {
        for (facade, client) in both(&server.url()) {
            server.command::<()>(&["FLUSHALL"]);
            let kind = if seed % 2 == 0 { "lock" } else { "semaphore" };
            let mut play = Play {
                client,
                inspect: inspect(),
                store: Store::new(),
                began: Instant::now(),
                dice: fastrand::Rng::with_seed(seed),
                name: format!("{kind} {facade}"),
                claims: Vec::new(),
                leases: Vec::new(),
                ahead: None,
                at: String::new(),
            };
            for step in 0..STEPS {
                play.at = format!("seed {seed}, {facade}, step {step}");
                play.step();
            }
        }
    }
}
