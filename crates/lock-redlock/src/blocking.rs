//! The quorum for plain threads: one thread for each node, so that all are asked at once and each in order.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::node::BlockingQuorumNode;
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, Effect, ErrorKind, EventSink, Fenced, Lease,
    Moment, Operation, ReleaseRequest, Released, Renewed, Ttl,
};
use lock_host::{HostClock, SharedClock};

use crate::quorum::{Acquire, Errand, Guard, Letter, Outcome, Purpose, Quorum, Release, Renew, Report, Verify};
use crate::{BACKEND, GUARD_WITHIN, hints, no_randomness, no_verdict, random_epochs};

/// A quorum, used from threads. The nodes' threads also finish what callers no longer wait for.
#[derive(Debug)]
pub struct Redlock<N> {
    desk: Arc<Desk<N>>,
}

/// What the callers and the nodes' threads have in common.
#[derive(Debug)]
struct Desk<N> {
    nodes: Arc<[N]>,
    ways: Vec<Sender<Job>>,
    quorum: Arc<Mutex<Quorum>>,
    /// Told when nothing is under way any more.
    quiet: Arc<Condvar>,
    clock: SharedClock,
}

/// A letter for a node's thread.
struct Job {
    letter: Letter,
    until: Instant,
    course: Arc<dyn Course>,
}

/// An errand that is being run, whatever comes of it.
trait Course: Send + Sync {
    fn heard(self: Arc<Self>, letter: &Letter, outcome: Outcome);
}

struct Running<N, E: Errand> {
    desk: Arc<Desk<N>>,
    errand: Mutex<E>,
    /// Dropped with the last letter, so that nobody waits for ever.
    verdict: Sender<E::Verdict>,
}

impl<N: BlockingQuorumNode> Redlock<N> {
    /// Of these nodes, without asking any: nobody votes until the guard has [passed](Self::pass).
    ///
    /// # Errors
    /// `Config` for less than three nodes, for one twice, or where this host cannot start threads.
    pub fn of(nodes: Vec<N>, max_ttl: Ttl) -> Result<Self, BackendError> {
        Self::on_clock(nodes, max_ttl, Arc::new(HostClock))
    }

    /// The same on a clock of the caller's.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on_clock(nodes: Vec<N>, max_ttl: Ttl, clock: SharedClock) -> Result<Self, BackendError> {
        let addresses: Vec<_> = nodes.iter().map(|node| node.address().to_owned()).collect();
        let quorum = Arc::new(Mutex::new(Quorum::new(&addresses, max_ttl)?));
        Self::with(nodes, quorum, Arc::default(), clock).map_err(|error| no_thread(&error))
    }

    fn with(nodes: Vec<N>, quorum: Arc<Mutex<Quorum>>, quiet: Arc<Condvar>, clock: SharedClock) -> io::Result<Self> {
        let nodes: Arc<[N]> = nodes.into();
        let mut ways = Vec::with_capacity(nodes.len());
        for index in 0..nodes.len() {
            let (way, jobs) = mpsc::channel();
            let nodes = Arc::clone(&nodes);
            thread::Builder::new().name("leasehold-node".into()).spawn(move || serve(&nodes[index], &jobs))?;
            ways.push(way);
        }
        Ok(Self { desk: Arc::new(Desk { nodes, ways, quorum, quiet, clock }) })
    }

    /// Of these nodes, after a first pass of the guard: all are asked, each for `within` at most.
    ///
    /// # Errors
    /// `Config` where nodes are not what they should be, whatever most nodes say if most cannot be reached. A quorum that
    /// does not vote yet is no error: what is asked of it says so.
    pub fn connect(nodes: Vec<N>, max_ttl: Ttl, within: Duration) -> Result<(Self, Report), BackendError> {
        let quorum = Self::of(nodes, max_ttl)?;
        let report = quorum.pass(Purpose::Watch, within)?;
        report.check_reached()?;
        Ok((quorum, report))
    }

    /// Has the guard pass.
    ///
    /// # Errors
    /// `Config` where nodes are not what they should be.
    pub fn pass(&self, purpose: Purpose, within: Duration) -> Result<Report, BackendError> {
        let epochs = random_epochs(self.desk.nodes.len()).map_err(|error| no_randomness(&error))?;
        self.verdict(|quorum, now| Guard::begin(quorum, now, purpose, within, epochs))
    }

    /// Runs a verb, and has the guard pass after it where it is time.
    fn run<T, E>(&self, begin: impl FnOnce(&mut Quorum, Moment) -> E) -> Result<T, BackendError>
    where
        E: Errand<Verdict = Result<T, BackendError>>,
    {
        let verdict = self.verdict(begin);
        self.guard();
        verdict
    }

    /// Runs an errand up to its verdict; the nodes' threads go on with what is left of it.
    fn verdict<T, E>(&self, begin: impl FnOnce(&mut Quorum, Moment) -> E) -> Result<T, BackendError>
    where
        E: Errand<Verdict = Result<T, BackendError>>,
    {
        let errand = begin(&mut self.desk.quorum(), self.desk.clock.now());
        let verdict = self.desk.start(errand).recv();
        verdict.unwrap_or_else(|_| Err(no_verdict()))
    }

    /// Has the guard pass in the background, where it is time.
    fn guard(&self) {
        let now = self.desk.clock.now();
        let mut quorum = self.desk.quorum();
        if quorum.wants_guard(now)
            && let Ok(epochs) = random_epochs(self.desk.nodes.len())
        {
            let guard = Guard::begin(&mut quorum, now, Purpose::Watch, GUARD_WITHIN, epochs);
            drop(quorum);
            _ = self.desk.start(guard);
        }
    }
}

impl<N> Desk<N> {
    fn quorum(&self) -> MutexGuard<'_, Quorum> {
        lock(&self.quorum)
    }

    /// Waits until nothing is under way, but no longer than `within`.
    fn settle(&self, within: Duration) {
        let busy = |quorum: &mut Quorum| !quorum.is_quiet();
        // What a thread that panicked left behind is not waited for.
        _ = self.quiet.wait_timeout_while(self.quorum(), within, busy);
    }
}

impl<N: BlockingQuorumNode> Desk<N> {
    /// Sends the errand's first letters.
    fn start<E: Errand>(self: &Arc<Self>, errand: E) -> Receiver<E::Verdict> {
        let (verdict, told) = mpsc::channel();
        let running = Arc::new(Running { desk: Arc::clone(self), errand: Mutex::new(errand), verdict });
        running.go_on(&mut lock(&running.errand));
        told
    }
}

impl<N: BlockingQuorumNode, E: Errand> Running<N, E> {
    /// Sends what is to be sent, and tells the verdict once it fell. In the order of the letters, so with the errand locked.
    fn go_on(self: &Arc<Self>, errand: &mut E) {
        while let Some(letter) = errand.next_letter() {
            let (node, until) = (letter.node.0, Instant::now() + letter.within);
            let course: Arc<dyn Course> = Arc::clone(self) as _;
            // A thread that has ended takes nothing any more; then the verdict is that there is none.
            _ = self.desk.ways[node].send(Job { letter, until, course });
        }
        if let Some(verdict) = errand.take_verdict() {
            _ = self.verdict.send(verdict);
        }
    }
}

impl<N: BlockingQuorumNode, E: Errand> Course for Running<N, E> {
    fn heard(self: Arc<Self>, letter: &Letter, outcome: Outcome) {
        let mut errand = lock(&self.errand);
        let mut quorum = self.desk.quorum();
        errand.heard(&mut quorum, self.desk.clock.now(), letter, outcome);
        let quiet = quorum.is_quiet();
        drop(quorum);
        self.go_on(&mut errand);
        if quiet {
            self.desk.quiet.notify_all();
        }
    }
}

/// A node's thread: one letter after the other, until nobody can send any more.
fn serve<N: BlockingQuorumNode>(node: &N, jobs: &Receiver<Job>) {
    while let Ok(Job { letter, until, course }) = jobs.recv() {
        let left = until.saturating_duration_since(Instant::now());
        let outcome = if left.is_zero() { Err(not_sent()) } else { node.ask(&letter.ask, left) };
        course.heard(&letter, outcome);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Others before it took all the time; nothing was sent.
fn not_sent() -> BackendError {
    let told = "the node answers too slowly for all that is asked of it";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Unreachable, Effect::None, told)
}

fn no_thread(error: &io::Error) -> BackendError {
    let told = format!("this host cannot start a thread for each node: {error}");
    BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, told)
}

impl<N: BlockingQuorumNode> Backend for Redlock<N> {
    fn capabilities(&self) -> Capabilities {
        crate::capabilities()
    }

    fn listen(&self, sink: EventSink) {
        let majority = self.desk.quorum().majority();
        hints::listen(&self.desk.nodes, majority, &sink);
    }
}

/// What its nodes' threads still have to send would end with the process.
impl<N> Drop for Redlock<N> {
    fn drop(&mut self) {
        self.desk.settle(lock_core::FLUSH_WITHIN);
    }
}

impl<N: BlockingQuorumNode> BlockingBackend for Redlock<N> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        let Desk { nodes, quorum, quiet, clock, .. } = &*self.desk;
        let nodes = nodes.iter().map(BlockingQuorumNode::for_keeper).collect();
        match Self::with(nodes, Arc::clone(quorum), Arc::clone(quiet), Arc::clone(clock)) {
            Ok(another) => Arc::new(another),
            // Without threads of its own the keeper shares these.
            Err(_) => self,
        }
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.run(|quorum, now| Acquire::begin(quorum, now, claim, within))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.run(|quorum, now| Renew::begin(quorum, now, leases, within))
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.run(|quorum, now| Release::begin(quorum, now, request, within))
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.run(|quorum, now| Verify::begin(quorum, now, lease, within))
    }

    fn flush(&self, within: Duration) {
        self.desk.settle(within);
    }
}
