//! Clients of ours that want the locks of a test as often as they can have them.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lock_blocking::{CancelToken, Guard, Mutex, ReadLock};
use lock_core::{AcquireError, ErrorKind, Holder, TryAcquireError};
use lock_host::Error;
use test_support::bounds::wait_for;

use super::suites::{Kind, Wanted};
use crate::support::{LONG, Viewer, end, locks};

/// How long a client is inside.
const HOLD: Duration = Duration::from_millis(3);
/// Between two attempts while the store is out of reach.
const NAP: Duration = Duration::from_millis(50);
/// Some tests stop their server for longer.
const SESSION: Duration = Duration::from_secs(30);

/// A busy machine may start a server slowly.
const REQUEST: Duration = Duration::from_secs(5);
/// The digits at the end of an entry's name.
const NUMBER: usize = 10;

/// What the clients did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) grants: u32,
    /// Those that waited for a client of Curator.
    pub(super) behind_curator: u32,
    /// How often the store was out of reach.
    pub(super) outages: u32,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.grants += other.grants;
        self.behind_curator += other.behind_curator;
        self.outages += other.outages;
    }
}

enum Lock {
    Exclusive(Mutex),
    Shared(ReadLock),
}

/// A client that wants one lock.
struct Rival {
    lock: Lock,
    path: String,
    /// What only holders touch.
    inside: Arc<AtomicU32>,
    /// None if the store will be out of reach.
    viewer: Option<Viewer>,
    grants: Arc<AtomicU32>,
    is_last: Arc<AtomicBool>,
}

/// All of them.
pub(super) struct Rivals {
    threads: Vec<JoinHandle<Result<Tally, String>>>,
    is_last: Arc<AtomicBool>,
    /// Ends the waits for what Curator keeps.
    kept: Option<CancelToken>,
}

impl Rivals {
    /// Starts two clients for each lock, and waits until each has had it: the test will find them there.
    pub(super) fn begin(wanted: &Wanted, address: &str) -> Self {
        let (is_last, cancel) = (Arc::<AtomicBool>::default(), CancelToken::new());
        let mut threads = Vec::new();
        for name in &wanted.locks {
            let inside = Arc::<AtomicU32>::default();
            for reads in [false, wanted.kind == Kind::ReadWrite] {
                let grants = Arc::<AtomicU32>::default();
                let rival = Rival {
                    lock: lock(wanted.kind, name, reads, address, &cancel),
                    path: format!("/{name}"),
                    inside: Arc::clone(&inside),
                    viewer: (!wanted.has_outage).then(|| Viewer::at(address)),
                    grants: Arc::clone(&grants),
                    is_last: Arc::clone(&is_last),
                };
                let thread = thread::spawn(move || rival.compete());
                wait_for("a first grant", || grants.load(Ordering::SeqCst) > 0 || thread.is_finished());
                threads.push(thread);
            }
        }
        Self { threads, is_last, kept: wanted.stays_held.then_some(cancel) }
    }

    /// Lets each have its lock once more, so nothing that the test left behind keeps it forever, unless the test keeps it.
    pub(super) fn end(self) -> Result<Tally, String> {
        self.is_last.store(true, Ordering::SeqCst);
        if let Some(cancel) = &self.kept {
            cancel.cancel();
        }
        let mut sum = Tally::default();
        for thread in self.threads {
            sum += end(thread)?;
        }
        Ok(sum)
    }
}

fn lock(kind: Kind, name: &str, reads: bool, address: &str, cancel: &CancelToken) -> Lock {
    let client =
        locks(&format!("zookeeper://{address}/?session={}s&op_timeout={}s", SESSION.as_secs(), REQUEST.as_secs()));
    match (kind, reads) {
        (Kind::ReadWrite, true) => Lock::Shared(client.rw_lock(name).read().wait(LONG).cancelled_by(cancel)),
        (Kind::ReadWrite, false) => Lock::Exclusive(client.rw_lock(name).write().wait(LONG).cancelled_by(cancel)),
        (Kind::Mutex, _) => Lock::Exclusive(client.mutex(name).wait(LONG).cancelled_by(cancel)),
    }
}

impl Rival {
    fn compete(self) -> Result<Tally, String> {
        let mut tally = Tally::default();
        loop {
            let is_last = self.is_last.load(Ordering::SeqCst);
            match self.round(&mut tally) {
                Ok(()) if is_last => return Ok(tally),
                Ok(()) => {}
                Err(Error::Acquire(AcquireError::Cancelled)) => return Ok(tally),
                Err(error) if self.viewer.is_none() && is_outage(&error) => {
                    tally.outages += 1;
                    thread::sleep(NAP);
                }
                Err(error) => return Err(format!("{} after {tally:?}: {error}", self.path)),
            }
        }
    }

    /// Waits for the lock, stays inside for a moment, and leaves.
    fn round(&self, tally: &mut Tally) -> Result<(), Error> {
        match &self.lock {
            Lock::Exclusive(lock) => {
                let guard = or_wait(lock.try_acquire_or_holder(), || lock.acquire(), tally)?;
                self.is_alone(&guard);
                self.leave(guard, tally)
            }
            Lock::Shared(lock) => {
                let guard = or_wait(lock.try_acquire_or_holder(), || lock.acquire(), tally)?;
                thread::sleep(HOLD);
                self.leave(guard, tally)
            }
        }
    }

    /// Nobody else of ours is inside, and no entry of Curator precedes this one, so by Curator's own rule none of its clients is.
    fn is_alone(&self, guard: &Guard) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two of ours hold {}", self.path);
        thread::sleep(HOLD);
        let first = self.viewer.as_ref().map(|viewer| first_entry(viewer, &self.path));
        self.inside.fetch_sub(1, Ordering::SeqCst);
        if guard.check().is_ok() {
            let is_ours = first.as_ref().is_none_or(|(_, data)| data.starts_with(b"{\"note\":"));
            assert!(is_ours, "{} is not held by the first of the queue, {first:?}", self.path);
        }
    }

    fn leave<M>(&self, guard: Guard<M>, tally: &mut Tally) -> Result<(), Error> {
        guard.check()?;
        guard.verify().map_err(Error::from)?;
        guard.release().map_err(Error::from)?;
        tally.grants += 1;
        self.grants.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// The name and the data of the first entry.
fn first_entry(viewer: &Viewer, path: &str) -> (String, Vec<u8>) {
    let children = viewer.children(path).into_iter().filter(|child| child.starts_with("_c_"));
    let number = |child: &String| child.get(child.len() - NUMBER..).map(str::to_owned);
    let first = children.min_by_key(number).expect("an entry of the holder");
    let data = viewer.data(&format!("{path}/{first}"));
    (first, data)
}

fn or_wait<G>(
    tried: Result<G, TryAcquireError>,
    wait: impl FnOnce() -> Result<G, AcquireError>,
    tally: &mut Tally,
) -> Result<G, Error> {
    match tried {
        Ok(guard) => Ok(guard),
        Err(TryAcquireError::Busy(busy)) => {
            let guard = wait()?;
            tally.behind_curator += u32::from(busy.holder == Some(Holder::Foreign));
            Ok(guard)
        }
        Err(TryAcquireError::Failed(error)) => Err(error.into()),
    }
}

/// Whether it is because the server was stopped, for longer than a session if so.
fn is_outage(error: &Error) -> bool {
    let kinds = [ErrorKind::Unreachable, ErrorKind::Timeout, ErrorKind::Unavailable];
    matches!(error, Error::Lost(_)) || error.backend().is_some_and(|error| kinds.contains(&error.kind()))
}
