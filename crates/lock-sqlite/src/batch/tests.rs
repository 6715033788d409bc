use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use lock_core::inspect::Query;
use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Fairness, LockName, Moment, NameKind, Note, Operation,
    Owner, Queueing, Released, Terms, Ttl, Width,
};

use lock_host::{Clock, HostClock, ManualClock};

use super::*;
use crate::error::refusal;
use crate::line::{Line, Serving};
use crate::queue::{Asked, Request};
use crate::store::Store;
use crate::verb::{Verb, work};
use crate::{SqliteConfig, Timing};

/// A line that only the test serves, so that it controls what is in a batch.
struct Rig {
    line: Arc<Line>,
    first: Option<Serving>,
    lead: Sender<Serving>,
    leads: Receiver<Serving>,
    commits: Arc<Commits>,
    clock: ManualClock,
    directory: tempfile::TempDir,
}

/// What the tests observe when commits begin.
#[derive(Default)]
struct Commits {
    count: AtomicUsize,
    /// How many requests were answered.
    answered: AtomicUsize,
    /// How many had been answered when the last commit began.
    before: AtomicUsize,
    fail: AtomicUsize,
}

type Answers<T> = Receiver<Result<T, BackendError>>;

impl Rig {
    fn new() -> Self {
        Self::with("")
    }

    /// A connection with these pragmas.
    fn with(pragmas: &str) -> Self {
        let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
        let mut store = open(&directory, &clock);
        store.connection().execute_batch(pragmas).unwrap();
        let commits = Arc::new(Commits::default());
        let seen = Arc::clone(&commits);
        let hook = move || {
            seen.count.fetch_add(1, Ordering::SeqCst);
            seen.before.store(seen.answered.load(Ordering::SeqCst), Ordering::SeqCst);
            seen.fail.load(Ordering::SeqCst) > 0
        };
        store.connection().commit_hook(Some(hook)).unwrap();
        let (lead, leads) = mpsc::channel();
        Self { line: Line::new(store), first: None, lead, leads, commits, clock, directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("locks.db")
    }

    fn join(&mut self, request: impl Request + 'static) {
        self.first = self.line.join(Box::new(request), self.lead.clone()).or(self.first.take());
    }

    fn request<V: Verb>(&self, verb: V) -> (impl Request + 'static, Answers<V::Answer>) {
        let (reply, answers) = mpsc::channel();
        let commits = Arc::clone(&self.commits);
        let reply = move |answer| {
            commits.answered.fetch_add(1, Ordering::SeqCst);
            drop(reply.send(answer));
        };
        (Asked::new(verb, soon(), reply), answers)
    }

    fn ask<V: Verb>(&mut self, verb: V) -> Answers<V::Answer> {
        let (request, answers) = self.request(verb);
        self.join(request);
        answers
    }

    /// Serves the line until it is empty. Returns how many commits that took.
    fn serve(&mut self) -> usize {
        let before = self.commits.count.load(Ordering::SeqCst);
        let mut next = self.first.take();
        while let Some(serving) = next {
            serving.serve();
            next = self.leads.try_recv().ok();
        }
        self.commits.count.load(Ordering::SeqCst) - before
    }

    fn holds(&mut self, claim: &Claim) -> bool {
        let answers = self.ask(claim.name.clone());
        self.serve();
        answers.recv().unwrap().unwrap().is_some()
    }
}

/// Another connection to the file.
fn open(directory: &tempfile::TempDir, clock: &ManualClock) -> Store {
    let config = SqliteConfig::new(directory.path().join("locks.db"));
    let mut store = Store::unopened(Arc::new(Settings::new(&config, Timing::with_clock(Arc::new(clock.clone())))));
    store.open().unwrap();
    store
}

fn soon() -> Moment {
    HostClock.now() + Duration::from_secs(20)
}

fn claim(name: &str, owner: u8) -> Claim {
    Claim {
        name: name.parse().unwrap(),
        owner: Owner::from_random([owner + 1; 16]),
        terms: Terms::exclusive(Ttl::DEFAULT),
        width: Width::ONE,
        floor: None,
        note: Note::new("h", 1, "").unwrap(),
        queueing: Queueing::Unwanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

fn token(answer: &Answers<Answer>) -> u64 {
    match answer.try_recv().unwrap().unwrap() {
        Answer::Granted { lease, .. } => lease.tokens.low().get(),
        other @ (Answer::Queued { .. } | Answer::Busy { .. }) => panic!("not granted: {other:?}"),
    }
}

#[test]
fn what_waits_is_committed_together_in_its_order_and_answered_after_that() {
    let mut rig = Rig::new();
    let answers: Vec<_> = (0..20).map(|n| rig.ask(claim(&format!("job:{n}"), n))).collect();
    assert_eq!(rig.serve(), 1);
    let tokens: Vec<u64> = answers.iter().map(token).collect();
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
    assert_eq!(rig.commits.before.load(Ordering::SeqCst), 0);
}

#[test]
fn a_batch_is_bounded() {
    let mut rig = Rig::new();
    let count = u8::try_from(BATCH_MAX).unwrap() * 3;
    let answers: Vec<_> = (0..count).map(|n| rig.ask(claim(&format!("job:{n}"), n))).collect();
    assert_eq!(rig.serve(), 3);
    answers.iter().for_each(|answer| assert!(token(answer) > 0));
    // No other connection can write meanwhile.
    let clock = rig.clock.clone();
    let slow = move || {
        let clock = clock.clone();
        work(move |_| {
            clock.advance(BATCH_TIME);
            Ok(())
        })
    };
    let answers = [rig.ask(slow()), rig.ask(slow())];
    assert_eq!(rig.serve(), 2);
    answers.iter().for_each(|answer| answer.try_recv().unwrap().unwrap());
}

#[test]
fn one_that_is_held_and_one_that_was_given_up_are_refused_and_the_others_are_granted() {
    let mut rig = Rig::new();
    let (held, given_up) = (claim("held", 1), claim("given-up", 2));
    rig.ask(held);
    rig.ask(given_up.release(Certainty::Unknown));
    rig.serve();

    let before = rig.ask(claim("a", 3));
    let busy = rig.ask(claim("held", 4));
    let refused = rig.ask(given_up.clone());
    let after = rig.ask(claim("b", 5));
    // The refusal ends the first batch and fails alone.
    assert_eq!(rig.serve(), 2);
    assert!(token(&before) < token(&after));
    assert!(matches!(busy.try_recv().unwrap(), Ok(Answer::Busy { .. })));
    let error = refused.try_recv().unwrap().unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
    assert!(!rig.holds(&given_up));
}

/// Does its work, and then fails.
fn half_done(claim: Claim) -> impl Verb<Answer = ()> {
    work(move |transaction| {
        transaction.acquire(&claim)?;
        Err(refusal(Operation::Acquire, ErrorKind::Protocol, "on purpose").into())
    })
}

#[test]
fn one_that_fails_changes_nothing_wherever_it_is_in_a_batch() {
    for place in 0..3 {
        let mut rig = Rig::new();
        let (spoiled, others) = (claim("spoiled", 9), [claim("a", 0), claim("b", 1)]);
        let mut answers = Vec::new();
        let mut failed = None;
        for turn in 0..3 {
            match turn == place {
                true => failed = Some(rig.ask(half_done(spoiled.clone()))),
                false => answers.push(rig.ask(others[answers.len()].clone())),
            }
        }
        rig.serve();
        assert!(token(&answers[0]) < token(&answers[1]));
        assert_eq!(failed.unwrap().try_recv().unwrap().unwrap_err().effect(), Effect::None);
        assert_eq!((rig.holds(&spoiled), rig.holds(&others[0]), rig.holds(&others[1])), (false, true, true));
    }
}

#[test]
fn a_full_disk_is_an_error_that_changes_nothing_and_passes() {
    let mut rig = Rig::with("PRAGMA max_page_count = 7");
    let claims: Vec<_> = (0..40).map(|n| claim(&format!("{}{n}", "x".repeat(500)), n)).collect();
    let answers: Vec<_> = claims.iter().map(|claim| rig.ask(claim.clone())).collect();
    rig.serve();
    let ends: Vec<_> = answers.iter().map(|answer| answer.try_recv().unwrap()).collect();
    let full = ends.iter().filter_map(|end| end.as_ref().err()).inspect(|error| {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
        assert!(error.to_string().contains("full"), "{error}");
    });
    assert!(full.count() > 0);
    for (claim, end) in claims.iter().zip(&ends) {
        assert_eq!(rig.holds(claim), end.is_ok(), "{claim:?}");
    }
    // The limit was that of the connection, which is not used again.
    let again = rig.ask(claims[0].clone());
    rig.serve();
    token(&again);
}

#[test]
fn a_commit_that_fails_is_unknown_to_all_of_its_batch() {
    let mut rig = Rig::new();
    rig.commits.fail.store(1, Ordering::SeqCst);
    let (first, second) = (claim("a", 1), claim("b", 2));
    let answers = [rig.ask(first.clone()), rig.ask(second.clone())];
    rig.serve();
    for answer in &answers {
        assert_eq!(answer.try_recv().unwrap().unwrap_err().effect(), Effect::Unknown);
    }
    assert!(!rig.holds(&first) && !rig.holds(&second));
}

/// A look at a lock that does something else once its snapshot was taken.
struct Look<F>(LockName, F);

impl<F: Fn() + Send + 'static> Verb for Look<F> {
    type Answer = bool;
    const OPERATION: Operation = Operation::Inspect;
    const ACCESS: Access = Access::Read;

    fn work(&self, transaction: &Transaction<'_>) -> Result<bool, Fault> {
        let is_held = transaction.holder(&self.0)?.is_some();
        self.1();
        Ok(is_held)
    }
}

#[test]
fn a_look_shows_what_others_had_committed_when_it_was_asked() {
    let (mut rig, mut other) = (Rig::new(), Rig::new());
    other.line = Line::new(open(&rig.directory, &rig.clock));
    let (other, claim) = (Mutex::new(other), claim("a", 0));
    let (later, answer) = rig.request(claim.name.clone());
    let (line, lead, later) = (Arc::clone(&rig.line), rig.lead.clone(), Mutex::new(Some(later)));
    let name = claim.name.clone();
    let first = rig.ask(Look(name, move || {
        let mut other = other.lock().unwrap();
        let granted = other.ask(claim.clone());
        other.serve();
        assert!(token(&granted) > 0);
        let later = later.lock().unwrap().take().unwrap();
        assert!(line.join(Box::new(later), lead.clone()).is_none());
    }));
    rig.serve();
    assert!(!first.recv().unwrap().unwrap(), "its snapshot is older than the claim");
    assert!(answer.recv().unwrap().unwrap().is_some(), "it was asked after the claim was answered");
}

#[test]
fn requests_for_one_name_take_effect_in_their_order() {
    let mut rig = Rig::new();
    let (one, two) = (claim("a", 1), claim("a", 2));
    let first = rig.ask(one.clone());
    let refused = rig.ask(two.clone());
    let released = rig.ask(one.release(Certainty::Answered));
    let second = rig.ask(two.clone());
    assert_eq!(rig.serve(), 1);
    assert!(token(&first) < token(&second));
    assert!(matches!(refused.try_recv().unwrap(), Ok(Answer::Busy { .. })));
    assert_eq!(released.try_recv().unwrap().unwrap(), Released::Released);

    let name: LockName = "a".parse().unwrap();
    let (held, _, free) = (rig.ask(name.clone()), rig.ask(two.release(Certainty::Answered)), rig.ask(name));
    rig.serve();
    assert!(held.try_recv().unwrap().unwrap().is_some() && free.try_recv().unwrap().unwrap().is_none());
}

#[test]
fn a_request_whose_time_was_over_in_the_line_is_not_begun() {
    let directory = tempfile::tempdir().unwrap();
    let config = SqliteConfig::new(directory.path().join("locks.db"));
    let line = Line::new(Store::unopened(Arc::new(Settings::new(&config, Timing::of_host().unwrap()))));
    let error = line.ask(Query::all(), HostClock.now()).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
    assert!(!directory.path().join("locks.db").exists());

    let mut rig = Rig::new();
    let before = rig.ask(claim("a", 1));
    let (reply, late) = mpsc::channel();
    rig.join(Asked::new(claim("b", 2), HostClock.now(), move |answer| drop(reply.send(answer))));
    let after = rig.ask(claim("c", 3));
    rig.serve();
    let error = late.try_recv().unwrap().unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
    assert!(token(&before) < token(&after) && !rig.holds(&claim("b", 2)));
}

/// Another process has the write lock, and the first in line has more patience than the second.
#[test]
fn a_request_does_not_wait_longer_than_it_may_for_the_one_before_it() {
    let mut rig = Rig::new();
    let other = Connection::open(rig.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let patient = rig.ask(claim("a", 1));
    let serving = rig.first.take().unwrap();
    let leading = std::thread::spawn(|| serving.serve());
    let error = rig.line.ask(claim("b", 2), HostClock.now() + Duration::from_millis(50)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
    assert_eq!(patient.try_recv().unwrap_err(), mpsc::TryRecvError::Empty);
    other.execute_batch("ROLLBACK").unwrap();
    leading.join().unwrap();
    assert!(token(&patient) > 0 && !rig.holds(&claim("b", 2)));
}

#[test]
fn if_the_serving_thread_panics_the_others_learn_of_it_and_the_next_one_serves() {
    let mut rig = Rig::new();
    rig.ask(work(|_| -> Result<(), Fault> { panic!("on purpose") }));
    let (beside, held) = (rig.ask(claim("a", 1)), claim("a", 1));
    let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rig.serve()));
    assert!(served.is_err());
    assert_eq!(beside.try_recv().unwrap_err(), mpsc::TryRecvError::Disconnected);
    assert!(!rig.holds(&held));
    let again = rig.ask(held);
    rig.serve();
    token(&again);
}

/// A request that is broken in one way, to show that the checks above see it.
struct Broken {
    request: Option<Box<dyn Request>>,
    twin: Twin,
}

#[derive(Clone, Copy, PartialEq)]
enum Twin {
    AnswersBeforeTheCommit,
    LosesItsRefusal,
}

impl Request for Broken {
    fn ask(&self) -> Ask {
        self.request.as_ref().unwrap().ask()
    }

    fn work(&mut self, transaction: &Transaction<'_>, watcher: &Watcher) -> Result<(), Fault> {
        let done = self.request.as_mut().unwrap().work(transaction, watcher);
        match self.twin {
            Twin::AnswersBeforeTheCommit => {
                let ask = self.ask();
                let done = Box::new(Asked::new(work(|_| Ok(())), ask.deadline, drop));
                self.request.replace(done).unwrap().answer(Ok(()), watcher);
                Ok(())
            }
            Twin::LosesItsRefusal => done.or(Ok(())),
        }
    }

    fn answer(self: Box<Self>, end: Result<(), BackendError>, watcher: &Watcher) {
        self.request.unwrap().answer(end, watcher);
    }
}

#[test]
fn twins_that_are_broken_are_seen() {
    let mut rig = Rig::new();
    for n in 0..3 {
        let (request, _) = rig.request(claim(&format!("job:{n}"), n));
        rig.join(Broken { request: Some(Box::new(request)), twin: Twin::AnswersBeforeTheCommit });
    }
    rig.serve();
    assert_eq!(rig.commits.before.load(Ordering::SeqCst), 3);

    let spoiled = claim("spoiled", 9);
    rig.ask(claim("a", 1));
    let (request, _) = rig.request(half_done(spoiled.clone()));
    rig.join(Broken { request: Some(Box::new(request)), twin: Twin::LosesItsRefusal });
    rig.serve();
    assert!(rig.holds(&spoiled));
}
