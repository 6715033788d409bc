//! A line: one worker waits to pay in, while the others want to look at the balance, for which they need a read lock.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use leasehold::Fairness;
use leasehold::blocking::ReadGuard;
use leasehold::clock::{Clock, HostClock};

use super::cues::{AT_MOST, Cues, Did};
use super::diary::Diary;
use super::leased::{LeasedLock, Scope, release};
use super::lock::Attempt;
use super::memory::Memory;
use super::worker::{Job, Worker, joined};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::raw::Raw;

/// How long the leases are that are held while a worker waits. Nothing waits for their end.
pub(crate) const TTL: Duration = Duration::from_secs(10);
/// How often it is checked whether a worker waits.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The first worker looks at the balance. Then the second comes to pay in, and then the others to look. Once each of them
/// has entered or waits, the first one leaves. Afterwards, all of them pay in.
pub(crate) fn play(jobs: &[Job], ground: &Ground, fairness: Fairness) -> Result<Diary, Failure> {
    let memory = Memory::default();
    let workers: Vec<_> = jobs.iter().map(|job| Worker::new(job, &memory)).collect::<Result<_, _>>()?;
    let mut workers = workers.into_iter();
    let (first, payer) = (workers.next(), workers.next());
    let lookers: Vec<_> =
        (2..).zip(workers).map(|(me, worker)| Looker::new(ground, me, worker)).collect::<Result<_, _>>()?;
    let all_came = Barrier::new(lookers.len() + 1);
    let inside = lock(ground, 0)?.read(Attempt::Again, Fairness::Fair)?;
    thread::scope(|scope| {
        let payer = payer.map(|payer| scope.spawn(|| payer.work()));
        lookers.first().map_or(Ok(()), Looker::await_payer)?;
        let all_came = &all_came;
        let look = |looker: Looker| scope.spawn(move || looker.look(fairness, all_came));
        let looking: Vec<_> = lookers.into_iter().map(look).collect();
        all_came.wait();
        release(inside);
        let first = first.map(|first| scope.spawn(|| first.work()));
        let all = first.into_iter().chain(payer).chain(looking);
        all.map(|worker| joined(worker.join())).collect::<Result<Vec<_>, _>>().map(Diary::sum)
    })
}

/// A worker that wants to look before it pays in.
struct Looker {
    lock: LeasedLock,
    cues: Cues,
    raw: Box<dyn Raw>,
    worker: Worker,
}

impl Looker {
    fn new(ground: &Ground, me: u64, worker: Worker) -> Result<Self, Failure> {
        Ok(Self { lock: lock(ground, me)?, cues: Cues::new(ground, me), raw: ground.open_raw()?, worker })
    }

    /// Waits until the payer is in line: then a fair reader may no longer enter.
    fn await_payer(&self) -> Result<(), Failure> {
        let deadline = HostClock.now() + AT_MOST;
        while HostClock.now() < deadline {
            match self.lock.read(Attempt::First, Fairness::Fair)? {
                None => return Ok(()),
                hold => release(hold),
            }
            thread::sleep(LOOK_EVERY);
        }
        Err(Failure::system("a worker did not come", "it took too long"))
    }

    fn look(mut self, fairness: Fairness, all_came: &Barrier) -> Result<Diary, Failure> {
        let at_once = self.try_look(fairness);
        all_came.wait();
        let (waits, passes) = match at_once? {
            Some((hold, passes)) => {
                release(Some(hold));
                (0, passes)
            }
            None => {
                let hold = self.lock.read(Attempt::Again, fairness)?;
                let passes = self.has_passed()?;
                release(hold);
                (1, passes)
            }
        };
        Ok(self.worker.work()?.add(Diary { waits, passes, ..Diary::default() }))
    }

    fn try_look(&mut self, fairness: Fairness) -> Result<Option<(ReadGuard, u64)>, Failure> {
        let Some(hold) = self.lock.read(Attempt::First, fairness)? else { return Ok(None) };
        Ok(Some((hold, self.has_passed()?)))
    }

    /// 1 if the payer, who came first, has not entered yet.
    fn has_passed(&mut self) -> Result<u64, Failure> {
        Ok(u64::from(!self.cues.another(&mut *self.raw, Did::Read)?))
    }
}

fn lock(ground: &Ground, me: u64) -> Result<LeasedLock, Failure> {
    LeasedLock::new(ground, Scope::Account, TTL, 0, me)
}
