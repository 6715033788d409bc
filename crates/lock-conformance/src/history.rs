//! Histories: the requests of several clients at the same time, and their answers.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use lock_core::{BackendError, Effect, Moment};

use crate::Verbs;
use crate::player::{Player, Use};
use crate::reference::{Ask, Reference, Reply, Timing};

/// How often each client asks.
const ASKS: usize = 5;

/// A request and its answer, and when both came, in steps of a counter.
struct Call {
    ask: Ask,
    said: Result<Reply, BackendError>,
    asked: u32,
    answered: u32,
}

/// The requests about one lock.
pub(crate) struct History {
    began: Moment,
    calls: Vec<Call>,
}

impl History {
    /// Lets each client ask for an unused lock.
    pub(crate) fn play(clients: &[Verbs], name: &str, seed: u64, lock: Use, began: Moment) -> Self {
        let (steps, start) = (AtomicU32::new(0), Barrier::new(clients.len()));
        let step = || steps.fetch_add(1, Ordering::SeqCst);
        let play = |client: &Verbs, number: u64| {
            let mut player = Player::new(seed ^ number << 32, name, lock, client.capabilities());
            start.wait();
            let call = |_| {
                let (ask, asked) = (player.ask(), step());
                let said = client.run(|store, within| ask.send(store, within));
                player.hear(&ask, &said);
                Call { ask, said, asked, answered: step() }
            };
            (0..ASKS).map(call).collect::<Vec<_>>()
        };
        let calls = thread::scope(|scope| {
            let play = &play;
            let players: Vec<_> =
                clients.iter().zip(0..).map(|(client, number)| scope.spawn(move || play(client, number))).collect();
            players.into_iter().flat_map(|player| player.join().unwrap()).collect()
        });
        Self { began, calls }
    }

    /// Whether some order of the requests explains all answers: in that order, the rules give the same ones. A request that was answered before
    /// another one was sent comes first.
    pub(crate) fn has_sequence(&self) -> bool {
        Search { history: self, seen: HashSet::new() }.finds(0, &Reference::new(Timing::Concurrent))
    }
}

impl Call {
    /// A request without an answer may take effect at any time, or never.
    fn end(&self) -> u32 {
        if self.is_unknown() { u32::MAX } else { self.answered }
    }

    fn is_unknown(&self) -> bool {
        self.said.as_ref().is_err_and(|error| error.effect() == Effect::Unknown)
    }
}

/// The search for the sequence.
struct Search<'a> {
    history: &'a History,
    /// The sets of calls and the states after them that were tried.
    seen: HashSet<(u64, u64)>,
}

impl Search<'_> {
    /// Whether some order of the calls outside of `done` explains their answers from here.
    fn finds(&mut self, done: u64, reference: &Reference) -> bool {
        let calls = &self.history.calls;
        let open = || calls.iter().enumerate().filter(|(number, _)| done & 1 << number == 0);
        if open().all(|(_, call)| call.is_unknown()) {
            return true;
        }
        let first_end = open().map(|(_, call)| call.end()).min().unwrap_or(u32::MAX);
        for (number, call) in open().filter(|(_, call)| call.asked < first_end) {
            let (mut next, done) = (reference.clone(), done | 1 << number);
            let agrees = call.is_unknown() || next.agrees(self.history.began, &call.ask, &call.said).is_ok();
            if call.is_unknown() {
                next.apply(self.history.began, &call.ask);
            }
            if agrees && self.seen.insert((done, next.fingerprint())) && self.finds(done, &next) {
                return true;
            }
        }
        false
    }
}

impl Reference {
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        hasher.finish()
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_unstable_by_key(|call| call.asked);
        calls
            .iter()
            .try_for_each(|Call { ask, said, asked, answered }| writeln!(f, "{asked}-{answered} {ask:?}\n    {said:?}"))
    }
}
