//! The eight stages: the lock of each, what goes wrong, and why.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::super::ground::Ground;
use super::balance::{Account, BALANCE, TOKEN};
use super::diary::Diary;
use super::gate::{LastEntry, Method, NAIVE_LOCK, Release};
use super::process::Paused;
use super::worker::{Check, Job, Mishap, WORK, Worker};
use crate::exit::Failure;

/// When a naive lock expires.
const EXPIRY: Duration = Duration::from_millis(500);
/// A holder that works past the expiry until the middle of the next holder's deposit.
const PAST_EXPIRY: Mishap = Mishap::Slow(Duration::from_millis(500 + 25));
/// The ttl of the leases: long enough for a busy machine to renew them in time, short enough to wait for its end.
const TTL: Duration = Duration::from_millis(1500);
/// A holder that works for one and a half times the ttl.
const PAST_TTL: Mishap = Mishap::Slow(Duration::from_millis(2250));

const _: () = assert!(WORK.as_millis() == 50, "PAST_EXPIRY ends in the middle of a deposit");

/// A kind of lock, and what happens to its first holder.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) title: &'static str,
    /// Three words at most.
    pub(crate) label: &'static str,
    method: Method,
    check: Check,
    /// What happens to the first worker.
    mishap: Mishap,
    pub(crate) promise: Promise,
    /// Why the account is wrong, or why it is right.
    pub(crate) why: &'static str,
}

/// What the lock of a stage promises about the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Nothing.
    Nothing,
    /// That no deposit is lost.
    Balance,
}

/// The story.
pub(crate) const STAGES: [Stage; 8] = [
    Stage {
        title: "no lock",
        label: "no lock",
        method: Method::None,
        check: Check::None,
        mishap: Mishap::None,
        promise: Promise::Nothing,
        why: "Workers read the same balance, and each write overwrites the others.",
    },
    Stage {
        title: "check whether the lock is free, then set it (two requests)",
        label: "check, then set",
        method: Method::LookThenSet,
        check: Check::None,
        mishap: Mishap::None,
        promise: Promise::Nothing,
        why: "Between the check and the set, others check, too: all of them find the lock free, and all take it.",
    },
    Stage {
        title: "set if absent (one request), without expiry; the first holder crashes",
        label: "no expiry",
        method: Method::SetIfAbsent { expiry: None, release: Release::Blind },
        check: Check::None,
        mishap: Mishap::Crash,
        promise: Promise::Nothing,
        why: "Only one worker is inside at a time, but the lock of the crashed holder is never released: all others wait forever.",
    },
    Stage {
        title: "set if absent, with expiry; the first holder works longer than that; anyone may delete the lock",
        label: "with expiry",
        method: Method::SetIfAbsent { expiry: Some(EXPIRY), release: Release::Blind },
        check: Check::None,
        mishap: PAST_EXPIRY,
        promise: Promise::Nothing,
        why: "The lock expires while the slow holder works. It continues alongside the next holder, and then deletes a lock that is no longer its own.",
    },
    Stage {
        title: "the same, but only the owner may delete the lock",
        label: "checked release",
        method: Method::SetIfAbsent { expiry: Some(EXPIRY), release: Release::ByOwner },
        check: Check::None,
        mishap: PAST_EXPIRY,
        promise: Promise::Nothing,
        why: "No worker deletes another's lock any more, but the slow holder still works alongside the next one after its own lock has expired.",
    },
    Stage {
        title: "leasehold: a renewed lease; the first holder works even longer",
        label: "renewed lease",
        method: Method::Lease { ttl: TTL },
        check: Check::None,
        mishap: PAST_TTL,
        promise: Promise::Balance,
        why: "The lease is renewed in the background for as long as its holder runs, however slow it is.",
    },
    Stage {
        title: "leasehold; the first holder is suspended before its write",
        label: "suspended",
        method: Method::Lease { ttl: TTL },
        check: Check::None,
        mishap: Mishap::Stop,
        promise: Promise::Nothing,
        why: "A suspended process renews nothing and does not notice that time passes. When it resumes, its next step is the write, which overwrites what others wrote in the meantime.",
    },
    Stage {
        title: "leasehold; the same, but the account checks the fencing token",
        label: "fencing token",
        method: Method::Lease { ttl: TTL },
        check: Check::Token,
        mishap: Mishap::Stop,
        promise: Promise::Balance,
        why: "The suspended holder still resumes too late, but its write carries a lower token than the account has seen. The write is refused, and the deposit is made again under a new lease.",
    },
];

/// The keys that the stages use in the store.
pub(crate) fn keys() -> Vec<String> {
    [BALANCE, TOKEN, NAIVE_LOCK].map(str::to_owned).into()
}

/// How many workers there are, and how many deposits each makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    pub(crate) workers: u32,
    pub(crate) deposits: u32,
}

/// The result of a stage.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Outcome {
    /// What the balance should be in the end.
    pub(crate) expected: u64,
    /// What it is.
    pub(crate) balance: u64,
    /// Deposits that were reported as successful.
    pub(crate) made: u64,
    /// Successful deposits that are missing from the balance.
    pub(crate) lost: u64,
    /// How many times a worker entered while another was inside.
    pub(crate) overlaps: u64,
    /// Workers that never got the lock again.
    pub(crate) stuck: u64,
    /// Times that a worker deleted the lock of another.
    pub(crate) freed_others: u64,
    /// Writes that the account refused.
    pub(crate) refused: u64,
    /// Times that a worker saw that its lease was lost and wrote nothing.
    pub(crate) noticed: u64,
}

impl Outcome {
    fn new(crew: Crew, balance: u64, all: &Diary) -> Self {
        Self {
            expected: crew.expected(),
            balance,
            made: all.made,
            lost: all.made.saturating_sub(balance),
            overlaps: all.overlaps(),
            stuck: all.stuck,
            freed_others: all.freed_others,
            refused: all.refused,
            noticed: all.noticed,
        }
    }

    /// Whether the account is right.
    pub(crate) fn is_right(&self) -> bool {
        self.balance == self.expected
    }
}

impl Crew {
    /// What the balance should be in the end.
    pub(crate) fn expected(self) -> u64 {
        u64::from(self.workers) * u64::from(self.deposits)
    }
}

impl Stage {
    /// Runs the workers and reads the account.
    pub(crate) fn play(&self, ground: &Ground, crew: Crew) -> Result<Outcome, Failure> {
        ground.clear()?;
        let all = match self.mishap {
            Mishap::Stop => self.play_around_a_stop(ground, crew)?,
            Mishap::None | Mishap::Crash | Mishap::Slow(_) => self.play_in_threads(ground, crew)?,
        };
        let balance = Account::at(ground).read(&mut *ground.open_raw()?)?;
        Ok(Outcome::new(crew, balance, &all))
    }

    fn play_in_threads(&self, ground: &Ground, crew: Crew) -> Result<Diary, Failure> {
        let last_entry = LastEntry::now();
        let first = Worker::new(&self.job(ground, crew, 0), &last_entry)?;
        let others = self.others(ground, crew, &last_entry)?;
        // A worker with a mishap goes first, so that it affects the others.
        let first = match self.mishap {
            Mishap::None => first,
            Mishap::Crash | Mishap::Slow(_) | Mishap::Stop => first.go_first()?,
        };
        work_together(std::iter::once(first).chain(others).collect())
    }

    fn play_around_a_stop(&self, ground: &Ground, crew: Crew) -> Result<Diary, Failure> {
        let others = self.others(ground, crew, &LastEntry::now())?;
        let paused = Paused::start(&self.job(ground, crew, 0))?;
        let meanwhile = work_together(others)?;
        Ok(paused.go_on()?.add(meanwhile))
    }

    fn others(&self, ground: &Ground, crew: Crew, last_entry: &LastEntry) -> Result<Vec<Worker>, Failure> {
        let job = |number| Job { mishap: Mishap::None, ..self.job(ground, crew, number) };
        (1..crew.workers).map(|number| Worker::new(&job(number), last_entry)).collect()
    }

    fn job(&self, ground: &Ground, crew: Crew, number: u32) -> Job {
        let Self { method, check, mishap, .. } = *self;
        Job { ground: ground.clone(), number, deposits: crew.deposits, method, check, mishap }
    }
}

/// Starts all workers at the same moment.
fn work_together(workers: Vec<Worker>) -> Result<Diary, Failure> {
    let start = Barrier::new(workers.len());
    let diaries: Vec<_> = thread::scope(|scope| {
        let begin = |worker: Worker| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                worker.work()
            })
        };
        let running: Vec<_> = workers.into_iter().map(begin).collect();
        running.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err(broke_off()))).collect()
    });
    diaries.into_iter().try_fold(Diary::default(), |all, diary| Ok(all.add(diary?)))
}

fn broke_off() -> Failure {
    Failure::system("a worker failed", "its thread panicked")
}
