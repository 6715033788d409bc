//! What a case gets: its own store, clients of its facade, time and faults.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{
    Answer, AsyncBackend, BackendError, BlockingBackend, Capabilities, Certainty, Claim, EntriesEnd, Moment, Ttl,
    Waiting, drift,
};
use lock_host::{Bridge, Bridged};
use lock_memory::faults::Faulty;
use tokio::runtime::Runtime;

use crate::child::{Child, Play};
use crate::verbs::claim;
use crate::{Client, Exemption, Facade, Fault, Faults, Guard, Harness, Verbs};

/// How much time passes between two looks of a waiter. With a manual clock it is a few times more than really passes,
/// so that clients keep up with it.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How much later than its end a lease may be seen to have ended: on a busy machine looks are far apart.
const LATE: Duration = Duration::from_secs(5);
/// How long a request of a client may take if its ttl allows it: a busy machine needs more than the default.
const OP_TIMEOUT: Option<Duration> = Some(Duration::from_secs(3));

/// One case's store, accessed through one facade.
pub struct Bench {
    facade: Facade,
    /// Dropped before the harness, because what runs on it still uses the store.
    runtime: Runtime,
    pub(crate) harness: Box<dyn Harness>,
    attach: fn(&str) -> Box<dyn Harness>,
    module: &'static str,
}

impl Bench {
    /// A bench with an unused store, for tests in the module that calls `suite!`.
    pub fn new<H: Harness>(facade: Facade, module: &'static str) -> Self {
        Self::of::<H>(H::new(), facade, module)
    }

    /// The same on servers of its own.
    pub(crate) fn alone<H: Harness>(facade: Facade, module: &'static str) -> Self {
        Self::of::<H>(H::alone(), facade, module)
    }

    pub(crate) fn attached<H: Harness>(address: &str, facade: Facade) -> Self {
        Self::of::<H>(H::attach(address), facade, "")
    }

    fn of<H: Harness>(harness: H, facade: Facade, module: &'static str) -> Self {
        Self { facade, runtime: runtime(), harness: Box::new(harness), attach: |at| Box::new(H::attach(at)), module }
    }

    pub(crate) fn facade(&self) -> Facade {
        self.facade
    }

    /// A new backend of this facade's kind.
    pub(crate) fn verbs(&self) -> Verbs {
        match self.facade {
            Facade::Nonblocking => {
                let bridge = Bridge::start().unwrap();
                Verbs::of_nonblocking(Bridged::new(self.harness.async_backend(bridge.handle()), bridge))
            }
            Facade::Blocking => Verbs::of_blocking(self.harness.blocking_backend()),
        }
    }

    /// Two new backends, or one twice if owners belong to one session: requests of an owner come from both.
    pub(crate) fn verbs_for_each_owner(&self) -> [Verbs; 2] {
        let one = self.verbs();
        let is_shared = one.capabilities().entries_end == EntriesEnd::WithTtl;
        let other = if is_shared { self.verbs() } else { one.clone() };
        [one, other]
    }

    /// A new client that faults do not strike.
    pub(crate) fn bystander(&self) -> Verbs {
        Verbs::of_blocking(self.harness.bystander())
    }

    /// A new client of this facade.
    pub(crate) fn client(&self) -> Client {
        self.client_of(self.facade)
    }

    /// A new client of that facade.
    pub(crate) fn client_of(&self, facade: Facade) -> Client {
        match facade {
            Facade::Nonblocking => self.nonblocking(self.harness.async_backend(self.runtime.handle())),
            Facade::Blocking => self.blocking(self.harness.blocking_backend()),
        }
    }

    /// Two new clients of this facade that share a backend, and what counts its requests.
    pub(crate) fn clients_of_one_backend(&self) -> ([Client; 2], lock_memory::faults::Faults) {
        let faults = lock_memory::faults::Faults::new();
        let clients = match self.facade {
            Facade::Nonblocking => {
                let backend = self.harness.async_backend(self.runtime.handle());
                let backend: Arc<dyn AsyncBackend> = Arc::new(Faulty::of(backend, &faults));
                [(); 2].map(|()| self.nonblocking(Arc::clone(&backend)))
            }
            Facade::Blocking => {
                let backend = self.harness.blocking_backend();
                let backend: Arc<dyn BlockingBackend> = Arc::new(Faulty::of(backend, &faults));
                [(); 2].map(|()| self.blocking(Arc::clone(&backend)))
            }
        };
        (clients, faults)
    }

    fn nonblocking(&self, backend: Arc<dyn AsyncBackend>) -> Client {
        let runtime = self.runtime.handle();
        let _on_it = runtime.enter();
        let builder = lock_async::Client::builder(backend).clock(self.harness.clock()).op_timeout(OP_TIMEOUT);
        Client::Nonblocking(builder.build().unwrap(), runtime.clone())
    }

    fn blocking(&self, backend: Arc<dyn BlockingBackend>) -> Client {
        let builder = lock_blocking::Client::builder(backend).clock(self.harness.clock()).op_timeout(OP_TIMEOUT);
        Client::Blocking(builder.build().unwrap())
    }

    /// The same store as other processes see it, on the host's clock. This bench must outlive it.
    pub(crate) fn shared(&self) -> Self {
        let (attach, module) = (self.attach, self.module);
        Self { facade: self.facade, runtime: runtime(), harness: attach(&self.address()), attach, module }
    }

    /// Starts another process that plays a part with this store.
    pub(crate) fn child(&self, name: &str, ttl: Duration) -> Child {
        let play = Play { facade: self.facade, name: name.into(), ttl, address: self.address() };
        Child::start(&play, self.module, self.harness.patience())
    }

    fn address(&self) -> String {
        self.harness.address().expect("this store is shared between processes")
    }

    pub(crate) fn has_address(&self) -> bool {
        self.harness.address().is_some()
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.verbs().capabilities()
    }

    pub(crate) fn exempt(&self) -> Vec<Exemption> {
        self.harness.exempt(self.facade)
    }

    pub(crate) fn faults(&self) -> &dyn Faults {
        self.harness.faults()
    }

    /// Does something during a fault, which must take effect.
    pub(crate) fn during<T>(&self, fault: Fault, act: impl FnOnce() -> T) -> T {
        self.faults().begin(fault);
        let _end = EndOfFault(self.faults());
        let done = act();
        assert!(self.faults().fired() > 0, "the fault never took effect: {fault}");
        done
    }

    pub(crate) fn patience(&self) -> Duration {
        self.harness.patience()
    }

    pub(crate) fn now(&self) -> Moment {
        self.harness.clock().now()
    }

    pub(crate) fn elapse(&self, by: Duration) {
        self.harness.elapse(by);
    }

    /// Lets all leases end that nobody has renewed for so long.
    pub(crate) fn outlive(&self, ttl: Duration) {
        self.elapse(ttl + ttl / 5 + self.harness.ends_late());
    }

    /// Waits in small steps until the condition holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut so: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !so() {
            assert!(begin.elapsed() < self.harness.patience(), "it never became true: {what}");
            self.pause();
        }
    }

    /// Waits until so many have places. Another client finds out by taking the place behind them and giving it up.
    #[track_caller]
    pub(crate) fn have_places(&self, waiters: u32, probe: impl Fn() -> Claim) {
        let other = self.verbs();
        if other.capabilities().waiting == Waiting::Poll {
            return;
        }
        self.until("they have places", || {
            let probe = probe();
            let answer = other.try_acquire(&probe).unwrap();
            other.try_release(&probe, Certainty::Answered).unwrap();
            matches!(answer, Answer::Queued { position, .. } if position > waiters)
        });
    }

    /// Lets a little time pass, for the clients' threads too.
    pub(crate) fn pause(&self) {
        self.elapse(LOOK_EVERY);
        thread::sleep(Duration::from_millis(1));
    }

    /// Repeats a request until it no longer fails with a transient error.
    #[track_caller]
    pub(crate) fn insist<T>(&self, mut ask: impl FnMut() -> Result<T, BackendError>) -> T {
        let begin = Instant::now();
        loop {
            match ask() {
                Ok(answer) => return answer,
                Err(error) => {
                    let goes_on = error.kind().is_transient() && begin.elapsed() < self.harness.patience();
                    assert!(goes_on, "still: {error}");
                    self.pause();
                }
            }
        }
    }

    /// Asks for a lock until it is granted, and returns when that was.
    #[track_caller]
    pub(crate) fn taken_over(&self, by: &Verbs, name: &str, no_later_than: Moment) -> Moment {
        // After a negative answer, the next claim has another owner.
        self.granted_by(no_later_than, || by.try_acquire(&claim(name)))
    }

    /// Asks until a claim is granted, and returns when that was.
    #[track_caller]
    pub(crate) fn granted_by(&self, time: Moment, mut ask: impl FnMut() -> Result<Answer, BackendError>) -> Moment {
        loop {
            let answer = self.insist(&mut ask);
            let now = self.now();
            match answer {
                Answer::Granted { .. } => return now,
                Answer::Busy { .. } | Answer::Queued { .. } => {
                    assert!(now < time + LATE, "it is still held, long after it should be free");
                }
            }
            self.pause();
        }
    }

    /// How long leases last that are asked for with this ttl.
    pub(crate) fn shortened(&self, ttl: Duration) -> Duration {
        self.verbs().capabilities().shortened(Ttl::new(ttl).unwrap()).get()
    }

    /// Lets time pass for a holder, whose renewals must keep up with it.
    #[track_caller]
    pub(crate) fn keep<M>(&self, guard: &Guard<M>, ttl: Duration, total: Duration) {
        let end = self.now() + total;
        while self.now() < end {
            self.elapse(ttl / 6);
            let begin = Instant::now();
            while guard.remaining() < ttl / 2 {
                assert!(begin.elapsed() < self.harness.patience(), "it is not renewed: {:?}", guard.check());
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// The earliest moment at which a lease that was requested at `asked_at` can end.
pub(crate) fn earliest_end(asked_at: Moment, valid_for: Duration) -> Moment {
    asked_at + valid_for.saturating_sub(drift(valid_for))
}

struct EndOfFault<'a>(&'a dyn Faults);

impl Drop for EndOfFault<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("facade", &self.facade).finish_non_exhaustive()
    }
}
