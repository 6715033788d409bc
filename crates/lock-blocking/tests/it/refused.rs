//! What a refused waiter runs on its own thread: the release of what it left at the store itself, and of nothing else.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lock_blocking::Client;
use lock_core::{BlockingBackend, BlockingLayer, Capabilities, Layer, Waiting};

use crate::support::{Ask, Bench, Hooked, unanswered, until};

const SECOND: Duration = Duration::from_secs(1);

/// The requests to the store, and the names of the threads that made them.
type Asked = (&'static str, Option<String>);

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Asked>>>);

impl Log {
    fn add(&self, ask: &Ask<'_>) {
        let what = match ask {
            Ask::Acquire(_) => "acquire",
            Ask::Renew(_) => "renew",
            Ask::Release(..) => "release",
        };
        self.0.lock().unwrap().push((what, thread::current().name().map(str::to_owned)));
    }

    /// How often a thread made this request.
    fn count(&self, what: &str, by: &str) -> usize {
        let log = self.0.lock().unwrap();
        log.iter().filter(|(asked, thread)| *asked == what && thread.as_deref() == Some(by)).count()
    }
}

fn named<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().name(name.into()).spawn(run).unwrap()
}

/// A store without a queue: the next claim waits for releases whose claims were not answered.
#[derive(Debug)]
struct Polled(Arc<dyn BlockingBackend>);

impl Layer for Polled {
    type Inner = dyn BlockingBackend;

    fn inner(&self) -> &Arc<dyn BlockingBackend> {
        &self.0
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.0.capabilities();
        capabilities.waiting = Waiting::Poll;
        capabilities
    }
}

impl BlockingLayer for Polled {
    fn over(&self, inner: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
        Arc::new(Self(inner))
    }
}

#[test]
fn a_refused_waiter_does_not_repeat_the_release_of_an_earlier_one() {
    let bench = Bench::new();
    let log = Log::default();
    let asked = log.clone();
    let backend = Hooked::new(bench.store.blocking(), move |ask: Ask<'_>| {
        asked.add(&ask);
        Err(unanswered())
    });
    let client =
        Client::builder(Arc::new(Polled(Arc::new(backend)))).clock(Arc::new(bench.clock.clone())).build().unwrap();
    let wait = |name: &str| {
        let mutex = client.mutex("a").ttl(3600 * SECOND).wait(5 * SECOND);
        named(name, move || mutex.acquire().is_err())
    };
    let first = wait("first");
    until(|| {
        bench.clock.advance(SECOND / 10);
        first.is_finished()
    });
    assert!(first.join().unwrap());
    for _ in 0..5 {
        let before = log.count("release", "leasehold-driver");
        let next = wait("next");
        // When it joins, the release is repeated at once.
        until(|| log.count("release", "leasehold-driver") > before);
        // The wait ends when the release is due again.
        until(|| {
            bench.clock.advance(10 * SECOND);
            next.is_finished()
        });
        assert!(next.join().unwrap());
    }
    assert_eq!((log.count("acquire", "next"), log.count("release", "next")), (0, 0));
}

#[test]
fn a_refused_waiter_does_not_ask_for_another_one() {
    let bench = Bench::new();
    let log = Log::default();
    let asked = log.clone();
    let backend = Hooked::new(bench.store.blocking(), move |ask: Ask<'_>| {
        asked.add(&ask);
        Ok(())
    });
    let client = Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap();
    let mut refusals = 0;
    for _ in 0..100 {
        let guard = client.mutex("a").max_hold(5 * SECOND).acquire().unwrap();
        let before = log.count("acquire", "refused");
        let wait = |name: &str, wait| {
            let mutex = client.mutex("a").wait(wait);
            let join = named(name, move || mutex.acquire().is_ok());
            // It joins behind the holder, and has nothing to run.
            thread::sleep(SECOND / 50);
            join
        };
        let (refused, admitted) = (wait("refused", 5 * SECOND), wait("admitted", 50 * SECOND));
        // The hold and the first wait end at this moment. From now on the clock stands still.
        bench.clock.advance(5 * SECOND);
        until(|| refused.is_finished() && admitted.is_finished());
        assert!(admitted.join().unwrap());
        // If it joined later, it has waited for its turn.
        if !refused.join().unwrap() {
            assert_eq!(log.count("acquire", "refused"), before);
            refusals += 1;
        }
        drop(guard);
        bench.becomes_free("a");
        if refusals == 5 {
            return;
        }
    }
    panic!("the waiters were late each time");
}
