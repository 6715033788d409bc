use std::sync::mpsc;
use std::time::Instant;

use lock_core::{Certainty, Fairness, NameKind, Note, Queueing, Terms, Ttl, Width};
use lock_host::{Clock, HostClock, ManualClock, new_owner};

use super::*;
use crate::line::Line;
use crate::queue::Asked;
use crate::store::Store;
use crate::{SqliteConfig, Timing};

/// Long enough for any machine; nothing waits for so long where all is well.
const WITHIN: Duration = Duration::from_secs(60);

struct Client {
    line: Arc<Line>,
    watcher: Arc<Watcher>,
    clock: ManualClock,
}

impl Client {
    fn open(directory: &tempfile::TempDir) -> Self {
        let config = SqliteConfig::new(directory.path().join("locks.db"));
        let clock = ManualClock::new();
        let settings = Arc::new(Settings::new(&config, Timing::with_clock(Arc::new(clock.clone()))));
        let mut store = Store::unopened(settings);
        let watcher = store.watcher();
        store.open().unwrap();
        Self { line: Line::new(store), watcher, clock }
    }

    /// A client that waits, and hears.
    fn listening(directory: &tempfile::TempDir) -> Self {
        let client = Self::open(directory);
        client.watcher.listen(EventSink::new(drop));
        client
    }

    fn ask(&self, claim: &Claim) -> u32 {
        match self.line.ask(claim.clone(), HostClock.now() + WITHIN).unwrap() {
            Answer::Queued { position, .. } => position,
            Answer::Granted { .. } | Answer::Busy { .. } => 0,
        }
    }

    fn leave(&self, claim: &Claim) {
        self.line.ask(claim.release(Certainty::Answered), HostClock.now() + WITHIN).unwrap();
    }

    fn looks(&self) -> u64 {
        self.watcher.0.lock().looks
    }

    fn wait_for_looks(&self, count: u64) {
        let begin = Instant::now();
        while self.looks() < count {
            assert!(begin.elapsed() < WITHIN, "{} looks instead of {count}", self.looks());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn claim() -> Claim {
    Claim {
        name: "a".parse().unwrap(),
        owner: new_owner().unwrap(),
        terms: Terms::exclusive(Ttl::DEFAULT),
        width: Width::ONE,
        floor: None,
        note: Note::new("h", 1, "").unwrap(),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

#[test]
fn nobody_watches_for_a_waiter_that_left_in_the_transaction_of_its_claim() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::listening(&directory);
    let (holder, waiter, deadline) = (claim(), claim(), HostClock.now() + WITHIN);
    assert_eq!(client.ask(&holder), 0);
    let (lead, _leads) = mpsc::channel();
    let asks = Box::new(Asked::new(waiter.clone(), deadline, drop));
    let serving = client.line.join(asks, lead.clone()).unwrap();
    assert!(
        client.line.join(Box::new(Asked::new(waiter.release(Certainty::Answered), deadline, drop)), lead).is_none()
    );
    serving.serve();
    assert_eq!(client.watcher.0.lock().poller.waiters().len(), 0);
}

#[test]
fn a_change_of_its_own_place_makes_a_calm_waiter_look_often_again() {
    let directory = tempfile::tempdir().unwrap();
    let (waiting, others) = (Client::listening(&directory), Client::open(&directory));
    let (holder, before, waiter) = (claim(), claim(), claim());
    assert_eq!([&holder, &before].map(|claim| others.ask(claim)), [0, 1]);
    assert_eq!(waiting.ask(&waiter), 2);
    waiting.clock.advance(Duration::from_secs(8));
    let calm_since = || waiting.watcher.0.lock().poller.changed();
    let begin = calm_since();
    waiting.wait_for_looks(waiting.looks() + 3);
    // A commit about another lock is none of its concern.
    others.ask(&Claim { name: "b".parse().unwrap(), ..claim() });
    waiting.wait_for_looks(waiting.looks() + 3);
    assert_eq!(calm_since(), begin);
    others.leave(&before);
    let start = Instant::now();
    while calm_since() == begin {
        assert!(start.elapsed() < WITHIN, "it has not noticed");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn who_stands_far_back_looks_rarely_and_often_as_soon_as_it_is_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let [first, last] = [(); 2].map(|()| Client::listening(&directory));
    let others = Client::open(&directory);
    let (holder, between) = (claim(), [(); 38].map(|()| claim()));
    assert_eq!(others.ask(&holder), 0);
    assert_eq!(first.ask(&claim()), 1);
    assert!(between.iter().map(|waiter| others.ask(waiter)).eq(2..=39));
    assert_eq!(last.ask(&claim()), 40);

    let before = (first.looks(), last.looks());
    first.wait_for_looks(before.0 + 400);
    let rarely = last.looks() - before.1;
    assert!(rarely < 40, "{rarely} looks from the 40th place, 400 from the first");

    // Nobody asks for it meanwhile: it finds out by looking.
    between.iter().for_each(|waiter| others.leave(waiter));
    let (before, begin) = ((first.looks(), last.looks()), Instant::now());
    last.wait_for_looks(before.1 + 100);
    let often = first.looks() - before.0;
    assert!(often < 800, "{often} looks of the first in {:?}, 100 of the second", begin.elapsed());
}

#[test]
fn who_left_is_watched_for_no_longer() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::listening(&directory);
    let (holder, waiter) = (claim(), claim());
    assert_eq!((client.ask(&holder), client.ask(&waiter)), (0, 1));
    assert_eq!(client.watcher.0.lock().poller.waiters().len(), 1);
    client.leave(&waiter);
    assert!(client.watcher.0.lock().poller.waiters().is_empty());
}

#[test]
fn the_thread_ends_with_the_watcher() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::listening(&directory);
    assert_eq!((client.ask(&claim()), client.ask(&claim())), (0, 1));
    client.wait_for_looks(1);
    let shared = Arc::downgrade(&client.watcher.0);
    drop(client);
    let begin = Instant::now();
    while shared.upgrade().is_some() {
        assert!(begin.elapsed() < WITHIN, "the thread still looks");
        thread::sleep(Duration::from_millis(5));
    }
}
