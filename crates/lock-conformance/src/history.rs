//! Histories: the requests of several clients at the same time, and their answers.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use lock_core::{BackendError, Effect, EntriesEnd, Moment};

use crate::Verbs;
use crate::player::{Player, Use};
use crate::reference::{Ask, Reference, Reply, Timing};

/// How often each client asks.
const ASKS: usize = 5;

/// A request and its answer, and when both came, in steps of a counter.
struct Call {
    /// The store's clock before the request.
    at: Moment,
    ask: Ask,
    said: Result<Reply, BackendError>,
    asked: u32,
    answered: u32,
}

/// The requests about one lock.
#[derive(Default)]
pub(crate) struct History {
    steps: AtomicU32,
    calls: Vec<Call>,
}

impl History {
    /// Lets each client ask for an unused lock.
    pub(crate) fn play(clients: &[Verbs], name: &str, seed: u64, lock: Use, began: Moment) -> Self {
        let (mut history, start) = (Self::default(), Barrier::new(clients.len()));
        let play = |client: &Verbs, number: u64| {
            let mut player = Player::new(seed ^ number << 32, name, lock, client.capabilities());
            start.wait();
            let call = |_| {
                let call = history.call(client, player.ask(), began);
                player.hear(&call.ask, &call.said);
                call
            };
            (0..ASKS).map(call).collect::<Vec<_>>()
        };
        let calls: Vec<_> = thread::scope(|scope| {
            let play = &play;
            let players: Vec<_> =
                clients.iter().zip(0..).map(|(client, number)| scope.spawn(move || play(client, number))).collect();
            players.into_iter().flat_map(|player| player.join().unwrap()).collect()
        });
        history.calls = calls;
        history
    }

    /// Asks after everything before.
    pub(crate) fn ask(&mut self, client: &Verbs, ask: Ask, at: Moment) -> &Result<Reply, BackendError> {
        let call = self.call(client, ask, at);
        self.calls.push(call);
        &self.calls[self.calls.len() - 1].said
    }

    /// Lets both clients ask at the same time.
    pub(crate) fn ask_both(&mut self, clients: [&Verbs; 2], asks: [Ask; 2], at: Moment) {
        let ready = AtomicU32::new(0);
        let (ready, history) = (&ready, &*self);
        let ask = |client, ask| {
            ready.fetch_add(1, Ordering::SeqCst);
            // A thread that is woken starts later than the one that wakes it.
            while ready.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            history.call(client, ask, at)
        };
        let ([one, two], [first, second]) = (clients, asks);
        let calls = thread::scope(|scope| {
            let second = scope.spawn(move || ask(two, second));
            [ask(one, first), second.join().unwrap()]
        });
        self.calls.extend(calls);
    }

    fn call(&self, client: &Verbs, ask: Ask, at: Moment) -> Call {
        let step = || self.steps.fetch_add(1, Ordering::SeqCst);
        let asked = step();
        let said = client.run(|store, within| ask.send(store, within));
        Call { at, ask, said, asked, answered: step() }
    }

    /// Whether some order of the requests explains all answers: in that order, the rules give the same ones. A request that was answered before
    /// another one was sent comes first.
    pub(crate) fn has_sequence(&self, entries_end: EntriesEnd) -> bool {
        Search { history: self, seen: HashSet::new() }.finds(0, &Reference::new(Timing::Concurrent, entries_end))
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
            let agrees = call.is_unknown() || next.agrees(call.at, &call.ask, &call.said).is_ok();
            if call.is_unknown() {
                next.apply(call.at, &call.ask);
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
        calls.iter().try_for_each(|Call { ask, said, asked, answered, .. }| {
            writeln!(f, "{asked}-{answered} {ask:?}\n    {said:?}")
        })
    }
}
