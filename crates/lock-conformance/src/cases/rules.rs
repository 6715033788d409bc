//! Every store answers as the rules do: to requests one after the other, and to requests that overlap as to some sequence of them.
//!
//! A failure names its seed; `LEASEHOLD_SEED` plays it again.

use std::env;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{EntriesEnd, Moment};

use crate::history::History;
use crate::pairs::{EXPIRY, PLACES_SAFE, Scene};
use crate::player::{Player, Use};
use crate::reference::{Ask, Reference, SHORT, Timing};
use crate::verbs::LONG;
use crate::{Bench, Verbs};

/// How many sequences are played, unless that takes longer: a store whose clock cannot be moved plays one for each use.
const TRACES: usize = 24;
const ENOUGH: Duration = Duration::from_secs(1);
/// How many requests follow each other. A sequence ends sooner if a store is so slow that places may expire; then more sequences are played.
const STEPS: usize = 120;
/// How many of the requests before a difference are shown.
const SHOWN: usize = 8;
/// How many clients ask at the same time, and how many times they do.
const CLIENTS: usize = 8;
const HISTORIES: usize = 12;
/// How many pairs are played together, at first. A store that does not answer all of them before the places of the first ones expire plays half
/// as many, again and again.
const MOST_TOGETHER: usize = 250;
const FEWEST_TOGETHER: usize = 8;
/// How long pairs are played if that is enough for this many of them, which are drawn at random: the next run draws others.
const PAIRS_WITHIN: Duration = Duration::from_secs(60);
const FEWEST_PAIRS: usize = 100;
/// How long waiters that act by themselves may take.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// A longer history tells nothing, because places may have expired in it.
const LONGEST: Duration = Duration::from_secs(5);

/// Random requests in any mode, with leases and places that expire now and then.
pub fn requests_are_answered_as_the_rules_say(bench: &Bench) {
    let (began, mut judged) = (Instant::now(), 0);
    for (number, (seed, lock)) in (0..TRACES).zip(seeds().zip(uses(bench))) {
        if began.elapsed() > ENOUGH && lock != Use::Semaphore && judged >= STEPS {
            break;
        }
        let (verbs, name) = (bench.verbs(), format!("a {number} {lock:?}"));
        let player = Player::new(seed, &name, lock, verbs.capabilities());
        let mut trace = Trace {
            bench,
            verbs,
            player,
            reference: Reference::new(Timing::Sequential, bench.capabilities().entries_end),
            at: String::new(),
            log: Vec::new(),
            began: bench.now(),
            short_since: None,
            is_blurred: false,
        };
        for step in 0..STEPS {
            trace.at = format!("LEASEHOLD_SEED={seed}, {lock:?}, step {step}");
            trace.step();
            if trace.is_blurred {
                break;
            }
            judged += 1;
        }
    }
    assert!(judged >= STEPS, "only {judged} steps ended before a place or a short lease could expire unnoticed");
}

/// Random requests of eight clients at the same time. Not for stores whose entries end with a session: there, a client reads the order and the
/// holder in two requests, so one answer can mix two moments.
///
/// # Source
/// Herlihy and Wing, "Linearizability: a correctness condition for concurrent objects".
pub fn overlapping_requests_are_answered_as_a_sequence_of_them(bench: &Bench) {
    let clients: Vec<Verbs> = (0..CLIENTS).map(|_| bench.verbs()).collect();
    let mut checked = 0;
    // Where waiters act by themselves, others see for a moment the claims that are refused because the name is in other use.
    let uses: &[Use] = if bench.harness.waiters_act() { &[Use::OnlyLock] } else { &[Use::Lock, Use::Semaphore] };
    for (number, (seed, lock)) in (0..HISTORIES).zip(seeds().zip(uses.iter().copied().cycle())) {
        let began = bench.now();
        let history = History::play(&clients, &format!("a {number}"), seed, lock, began);
        if bench.now().since(began) < LONGEST {
            assert!(
                history.has_sequence(bench.capabilities().entries_end),
                "LEASEHOLD_SEED={seed}, {lock:?}: no sequence has these answers:\n{history}"
            );
            checked += 1;
        }
    }
    assert!(checked > HISTORIES / 2, "only {checked} of {HISTORIES} histories took less than {LONGEST:?}");
}

/// The uses of the locks, in turn. Waiters that act by themselves do so in any order. So their slots are not known, and after a
/// replacement neither are their tokens.
fn uses(bench: &Bench) -> impl Iterator<Item = Use> {
    let uses: &[Use] = if bench.harness.waiters_act() { &[Use::Unreplaced] } else { &[Use::Lock, Use::Semaphore] };
    uses.iter().copied().cycle()
}

/// Each pair of requests at the same time, in each scene: a lock that is free, held, shared, expired in part, or kept, and one with a queue.
pub fn pairs_are_answered_as_one_after_the_other(bench: &Bench) {
    let clients = bench.verbs_for_each_owner();
    let scenes = Scene::all(&clients[0].capabilities(), bench.harness.waiters_act());
    let mut pairs = Vec::new();
    for (number, scene) in scenes.iter().enumerate() {
        let first = scene.play(bench, &clients, &format!("a {number}"));
        pairs.extend(first.pairs().into_iter().map(|pair| (scene, format!("a {number} {:?}", pair.numbers), pair)));
    }
    fastrand::shuffle(&mut pairs);
    let (all, began, mut judged, mut together) = (pairs.len(), Instant::now(), 0, MOST_TOGETHER);
    let is_enough = |judged| judged >= FEWEST_PAIRS && began.elapsed() > PAIRS_WITHIN;
    while !pairs.is_empty() && !is_enough(judged) {
        let some = pairs.split_off(pairs.len().saturating_sub(together));
        let stages = in_parallel(some, |(scene, name, pair)| (scene.play(bench, &clients, &name), (scene, name, pair)));
        // Once for all of them, because some stores' clocks cannot be moved.
        bench.outlive(EXPIRY);
        let asked = in_parallel(stages, |(stage, played)| (stage.ask_both(bench, &clients, &played.2), played));
        let (in_time, late): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(is_in_time, _)| *is_in_time);
        judged += in_time.len();
        if late.len() > in_time.len() && together > FEWEST_TOGETHER {
            together /= 2;
            pairs.extend(late.into_iter().map(|(_, (scene, name, pair))| (scene, format!("{name} again"), pair)));
        }
    }
    assert!(judged > all / 2 || is_enough(judged), "only {judged} of {all} pairs were in time");
}

/// Does the same with all of these, on threads that wait for the store together.
fn in_parallel<T: Send, U: Send>(works: Vec<T>, act: impl Fn(T) -> U + Sync) -> Vec<U> {
    let (works, done) = (Mutex::new(works.into_iter()), Mutex::new(Vec::new()));
    let next = || works.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while let Some(work) = next() {
                    let result = act(work);
                    done.lock().unwrap().push(result);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

fn seeds() -> impl Iterator<Item = u64> {
    let given = env::var("LEASEHOLD_SEED").ok().map(|text| text.parse().unwrap());
    let first = given.unwrap_or_else(|| fastrand::u64(..1_000_000));
    (0..).map(move |number| if given.is_some() { first } else { first + number })
}

/// A store and the rules, which are asked the same.
struct Trace<'a> {
    bench: &'a Bench,
    verbs: Verbs,
    player: Player,
    reference: Reference,
    at: String,
    /// The requests so far, and their answers.
    log: Vec<String>,
    /// When the first request was sent.
    began: Moment,
    /// When the first lease began that is to expire next.
    short_since: Option<Moment>,
    /// Requests were so slow that a place or a short lease may have expired before or after the latest ones.
    is_blurred: bool,
}

impl Trace<'_> {
    fn step(&mut self) {
        let ends_with_ttl = self.verbs.capabilities().entries_end == EntriesEnd::WithTtl;
        let can_expire = ends_with_ttl && !self.bench.harness.waiters_act();
        match self.player.dice.u8(..60) {
            0 if can_expire => {
                if self.player.dice.bool() {
                    while let Some(release) = self.player.give_up_first() {
                        self.play(|_| release);
                    }
                }
                let claims = self.player.dice.u8(1..4);
                self.short_since = Some(self.bench.now());
                (0..claims).for_each(|_| self.play(|player| player.new_claim(SHORT)));
                (0..claims).for_each(|_| self.play(Player::ask));
                self.expire();
            }
            1 if can_expire => {
                self.short_since = Some(self.bench.now());
                self.play(Player::keep_shortly);
                self.expire();
            }
            _ => self.play(Player::ask),
        }
    }

    fn play(&mut self, ask: impl FnOnce(&mut Player) -> Ask) {
        let ask = ask(&mut self.player);
        self.send(&ask);
        if self.verbs.can_inspect() {
            self.send(&Ask::Show(ask.name().clone()));
        }
    }

    fn send(&mut self, ask: &Ask) {
        let mut said = self.verbs.run(|store, within| ask.send(store, within));
        self.player.hear(ask, &said);
        let now = self.bench.now();
        self.is_blurred |=
            now.since(self.began) > PLACES_SAFE || self.short_since.is_some_and(|since| now.since(since) > SHORT / 2);
        if self.is_blurred {
            return;
        }
        let mut agreed = self.reference.agrees(self.bench.now(), ask, &said);
        let began = Instant::now();
        while agreed.is_err() && self.may_settle(ask) && began.elapsed() < SETTLES_WITHIN {
            self.bench.pause();
            said = self.verbs.run(|store, within| ask.send(store, within));
            agreed = self.reference.agrees(self.bench.now(), ask, &said);
        }
        let last = self.log.len().saturating_sub(SHOWN);
        agreed.unwrap_or_else(|difference| panic!("{}: {difference}\nafter\n{}", self.at, self.log[last..].join("\n")));
        self.log.push(format!("{ask:?}\n    {said:?}"));
    }

    /// Whether the answer may need a moment to become what the rules say: waiters that act by themselves act after the request that lets them
    /// in.
    fn may_settle(&self, ask: &Ask) -> bool {
        matches!(ask, Ask::Show(_)) && self.bench.harness.waiters_act()
    }

    fn expire(&mut self) {
        self.short_since = None;
        self.bench.outlive(SHORT + SHORT / 4);
        self.player.forget_expired();
        // One that nobody has served since, and a lease whose owner has another one by then.
        self.play(Player::renew_latest);
        self.play(|player| player.new_claim(LONG));
        self.play(Player::ask_again_for_latest);
        self.play(Player::renew_earlier);
    }
}
