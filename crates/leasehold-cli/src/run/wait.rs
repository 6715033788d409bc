//! Waiting for the lock, and giving up on a signal.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::LockName;
use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::inspect::Entry;
use leasehold::kit::Budget;
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use signal_hook::low_level::emulate_default_handler;

use super::channel::sleep_on;
use super::obstacle_lookup::ObstacleLookup;
use super::signals::{self, Signals};
use super::spinner::Spinner;
use super::store_errors::{StoreError, StoreErrors};
use super::terminal::Terminal;
use crate::durations::rough;
use crate::exit::{Exit, Failure};
use crate::held::Held;
use crate::hold::{End, Hold};
use crate::lock_request::{LockRequest, Patience};
use crate::locks::Locks;
use crate::log::Log;
use crate::report::Voice;
use crate::store::Store;

const TURN: Duration = Duration::from_millis(200);
/// The pause before an unreachable store is tried again.
const AWAY_PAUSE: Duration = Duration::from_millis(250);
/// How long leaving the queue may take after the wait was given up.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);

/// Acquires the lock; a signal that asks for an end leaves the queue instead.
pub(crate) fn acquire(
    call: WaitCall,
    signals: &mut Signals,
    terminal: Option<&Terminal>,
    voice: &mut Voice,
) -> Result<(Locks, Hold), Failure> {
    let request = call.request.clone();
    let thread = AcquireThread::begin(call).map_err(|error| Failure::system("cannot start a thread", error))?;
    let lookup = thread.lookup(&request.name).map_err(|error| Failure::system("cannot start a thread", error))?;
    let mut spinner = Spinner::new(&request, voice);
    let mut errors = StoreErrors::default();
    loop {
        sleep_on(&[thread.done.as_fd(), signals.as_fd()], TURN);
        let answer = thread.answer.try_recv();
        thread.warnings.try_iter().for_each(|warning| voice.warn(&warning));
        match answer {
            Ok(answer) => return answer,
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                return Err(Failure::new(Exit::Internal, "the thread that waits for the lock has ended; run it again"));
            }
        }
        for signal in signals.take() {
            match signal {
                SIGWINCH | SIGCONT => {}
                SIGTSTP => stop_here(terminal),
                _ => return Err(thread.give_up(signal)),
            }
        }
        if let Some(error) = errors.unreported(HostClock.now(), thread.store_error(&request)) {
            spinner.aside(|| voice.warn_waiting(&request.name, &error));
        }
        if spinner.wants_look() {
            lookup.ask();
        }
        if let Some(obstacle) = lookup.latest() {
            spinner.show(voice, obstacle);
        }
    }
}

/// A thread that waits for the lock, since a blocking wait does not notice signals.
struct AcquireThread {
    stage: Arc<Mutex<Stage>>,
    warnings: Receiver<String>,
    answer: Receiver<Result<(Locks, Hold), Failure>>,
    /// Becomes readable when the answer has arrived.
    done: UnixStream,
}

impl AcquireThread {
    fn begin(call: WaitCall) -> io::Result<Self> {
        let (sender, answer) = channel();
        let (warn, warnings) = channel();
        let (done, end) = UnixStream::pair()?;
        let stage = Arc::new(Mutex::new(Stage::Connecting(None)));
        let mut attempts = Attempts {
            call,
            since: HostClock.now(),
            stage: Arc::clone(&stage),
            warn: Some(warn),
            may_hold_mark: false,
        };
        std::thread::Builder::new().name("acquire".to_owned()).spawn(move || {
            // If the receiver is gone, the hold in the answer is dropped, and so released.
            let _ = sender.send(attempts.run());
            drop(end);
        })?;
        Ok(Self { stage, warnings, answer, done })
    }

    /// Looks up what is in the way.
    fn lookup(&self, name: &LockName) -> io::Result<ObstacleLookup> {
        let (now, name) = (Arc::clone(&self.stage), name.clone());
        ObstacleLookup::new(move || {
            let locks = match &*stage(&now) {
                Stage::Connecting(trouble) => return trouble.clone(),
                Stage::Acquiring(locks) => locks.clone(),
                Stage::GivenUp => return None,
            };
            locks.obstacle(&name)
        })
    }

    /// Why the store does not answer, if so.
    fn store_error(&self, request: &LockRequest) -> Option<StoreError> {
        match &*stage(&self.stage) {
            Stage::Connecting(trouble) => trouble.clone().map(StoreError::from),
            Stage::Acquiring(locks) => locks.store_error(request).map(StoreError::from),
            Stage::GivenUp => None,
        }
    }

    fn give_up(self, signal: i32) -> Failure {
        let before = std::mem::replace(&mut *stage(&self.stage), Stage::GivenUp);
        if let Stage::Acquiring(locks) = before {
            locks.close();
            if let Ok(Ok((_, hold))) = self.answer.recv_timeout(LEAVE_WITHIN) {
                // The command has not run, so its slot is free. If this fails, the lease expires.
                let _ = hold.end(End::Failed);
            }
        }
        let name = signals::name_of(signal);
        Failure::new(Exit::Interrupted(signal), format!("gave up waiting on {name}; the command was not started"))
    }
}

/// The progress of the thread that waits for the lock.
enum Stage {
    /// The store has not been reached yet; the last reason.
    Connecting(Option<String>),
    /// The store is asked.
    Acquiring(Locks),
    /// The wait was given up.
    GivenUp,
}

fn stage(stage: &Mutex<Stage>) -> MutexGuard<'_, Stage> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks a store for a lock, and again while it is unreachable and the wait continues.
struct Attempts {
    call: WaitCall,
    since: Moment,
    stage: Arc<Mutex<Stage>>,
    /// For the warnings of the store, until they were sent.
    warn: Option<Sender<String>>,
    /// Whether the mark of a slot may have been acquired, which the next attempt would find taken.
    may_hold_mark: bool,
}

impl Attempts {
    fn run(&mut self) -> Result<(Locks, Hold), Failure> {
        let mut request = self.call.request.clone();
        loop {
            let failure = match self.attempt(&request) {
                Ok(got) => return Ok(got),
                Err(failure) => failure,
            };
            let limit = match self.call.request.patience {
                Patience::Until(limit) => limit,
                Patience::Always => Duration::MAX,
                Patience::None | Patience::Endless => return Err(failure),
            };
            if failure.exit != Exit::Unavailable || self.may_hold_mark {
                return Err(failure);
            }
            let left = limit.saturating_sub(HostClock.now().since(self.since));
            self.enter(Stage::Connecting(Some(failure.message.clone())))?;
            std::thread::sleep(left.min(AWAY_PAUSE));
            if left <= AWAY_PAUSE {
                return Err(self.waited_in_vain(&failure));
            }
            if let Patience::Until(_) = request.patience {
                request.patience = Patience::Until(left - AWAY_PAUSE);
            }
        }
    }

    /// The failure at the end of a wait that was set.
    fn waited_in_vain(&self, failure: &Failure) -> Failure {
        let waited = rough(HostClock.now().since(self.since));
        let (name, message) = (&self.call.request.name, &failure.message);
        Failure::new(failure.exit, format!("waited {waited} for {name}, but {message}"))
    }

    fn attempt(&mut self, request: &LockRequest) -> Result<(Locks, Hold), Failure> {
        let locks = Locks::connect_logged(&self.call.store, self.call.log.clone())?;
        if let Some(warn) = self.warn.take() {
            // After giving up there is no receiver.
            locks.warnings().iter().for_each(|warning| drop(warn.send(warning.clone())));
        }
        self.call.check_leases(&locks)?;
        self.call.refuse_nested()?;
        self.enter(Stage::Acquiring(locks.clone()))?;
        self.may_hold_mark = request.job.slot.is_some();
        match locks.acquire(request) {
            Ok(hold) => Ok((locks, hold)),
            Err(failure) => {
                // A queue place that is still there would delay others after the end of this process.
                locks.close();
                Err(failure)
            }
        }
    }

    fn enter(&self, next: Stage) -> Result<(), Failure> {
        let mut stage = stage(&self.stage);
        if let Stage::GivenUp = *stage {
            return Err(Failure::new(Exit::Internal, "the wait was given up"));
        }
        *stage = next;
        Ok(())
    }
}

/// The lock and the store, the locks of this process's ancestors, and where what happens is logged.
pub(crate) struct WaitCall {
    pub(crate) store: Store,
    pub(crate) request: LockRequest,
    pub(crate) held: Held,
    pub(crate) log: Option<Arc<Log>>,
    pub(crate) grace: Option<Duration>,
}

impl WaitCall {
    /// Refuses a store whose leases are too short, whatever ttl they are asked for with.
    fn check_leases(&self, locks: &Locks) -> Result<(), Failure> {
        let budget = Budget::of_store(&locks.client().capabilities(), self.request.options.ttl, self.grace);
        Ok(budget.map(drop)?)
    }

    /// Refuses a lock that an enclosing run holds. What it holds as another kind is left to the store, whose error says so.
    fn refuse_nested(&self) -> Result<(), Failure> {
        let name = &self.request.name;
        let suits = |entry: &Entry| entry.holders.iter().all(|held| held.mode.suits(self.request.mode));
        let held_above = self.held.mentions(name)
            && Locks::shown(&self.store, name).is_some_and(|entry| suits(&entry) && self.held.includes(name, &entry));
        if !held_above {
            return Ok(());
        }
        let message = format!(
            "{name} is already held by an enclosing `leasehold run`, and waiting could deadlock; use another name, or \
             remove the inner run"
        );
        Err(Failure::new(Exit::Busy(self.request.busy_code), message))
    }
}

/// Stops the job, and this process with it: while waiting, nothing is held that could be lost.
fn stop_here(terminal: Option<&Terminal>) {
    if let Some(terminal) = terminal {
        terminal.stop_job();
    }
    // If it cannot be stopped, it continues.
    let _ = emulate_default_handler(SIGTSTP);
}
