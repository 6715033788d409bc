//! A worker: it reads the balance, works for a moment, and writes the balance plus one.

use std::mem;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use leasehold::FencingToken;
use leasehold::clock::Moment;
use leasehold::clock::{Clock, HostClock};
use serde::{Deserialize, Serialize};

use super::balance::{Account, Written};
use super::cues::{AT_MOST, Cues, Did};
use super::diary::{Diary, Visit};
use super::gate::{Gate, Method, Patience, Visitor};
use super::lock::Left;
use super::memory::Memory;
use super::mishap::{Before, Mishap};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::raw::Raw;

/// How long a deposit takes: from the read to the write.
const WORK: Duration = Duration::from_millis(50);

/// What the account checks at a write.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Check {
    /// Nothing.
    None,
    /// The fencing token.
    Token,
    /// The same, and each worker raises the fence to its token before it reads.
    RaisedToken,
}

/// How long the first deposit of the worker takes that enters after the first one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Second {
    /// As long as any other.
    Usual,
    /// Until another worker has done this.
    Until(Did),
}

/// What a worker is to do. Passed to other processes through pipes only: the ground may contain a password.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) ground: Ground,
    /// Unique among the workers.
    pub(crate) number: u32,
    pub(crate) account: u32,
    pub(crate) deposits: u32,
    pub(crate) method: Method,
    pub(crate) check: Check,
    pub(crate) mishap: Mishap,
    pub(crate) second: Second,
    pub(crate) patience: Patience,
}

/// A worker with its own connections, as if it were alone on its machine.
pub(crate) struct Worker {
    raw: Box<dyn Raw>,
    gate: Gate,
    cues: Cues,
    account: Account,
    job: Job,
    inside: Option<Inside>,
    diary: Diary,
}

/// A worker has entered, and read the balance.
#[derive(Clone, Copy, Debug)]
struct Inside {
    since: Moment,
    balance: u64,
    /// The deposit takes until another worker has done this.
    until: Option<Did>,
}

/// The result of a deposit.
enum Deposit {
    Made,
    /// The account refused it.
    Refused,
    /// The worker noticed in time that it had lost the lock.
    Noticed,
}

impl Worker {
    /// Connects. The workers of a process share its memory.
    pub(crate) fn new(job: &Job, memory: &Memory) -> Result<Self, Failure> {
        let Job { ground, number, account, method, patience, .. } = job;
        let visitor = Visitor { me: u64::from(*number), account: *account, patience: *patience };
        Ok(Self {
            // First, since it prepares TLS if the store needs it.
            gate: Gate::new(*method, ground, visitor, memory)?,
            raw: ground.open_raw()?,
            cues: Cues::new(ground, visitor.me),
            account: Account::at(ground, *account),
            job: job.clone(),
            inside: None,
            diary: Diary::default(),
        })
    }

    /// Enters for the first deposit and reads the balance, before the other workers begin.
    pub(crate) fn go_first(mut self) -> Result<Self, Failure> {
        self.inside = self.come_in()?;
        Ok(self)
    }

    /// Makes all its deposits.
    pub(crate) fn work(mut self) -> Result<Diary, Failure> {
        while self.diary.made < u64::from(self.job.deposits) {
            let Some(inside) = self.come_in()? else {
                self.diary.stuck = 1;
                break;
            };
            self.take_time(inside.until)?;
            let deposit = self.finish(inside.balance)?;
            self.note(inside, &deposit);
            self.leave()?;
        }
        self.diary.waits = self.gate.waits;
        Ok(self.diary)
    }

    fn come_in(&mut self) -> Result<Option<Inside>, Failure> {
        if let Some(inside) = self.inside.take() {
            return Ok(Some(inside));
        }
        let Some(since) = self.enter_in_time()? else { return Ok(None) };
        let balance = self.account.read(&mut *self.raw)?;
        // Before the others hear of it, so that no later one is taken for the second.
        let until = self.waits_for()?;
        self.cues.tell(&mut *self.raw, Did::Read)?;
        Ok(Some(Inside { since, balance, until }))
    }

    /// Enters, and raises the fence if the account wants that. Enters again if that comes too late.
    fn enter_in_time(&mut self) -> Result<Option<Moment>, Failure> {
        loop {
            let Some(since) = self.gate.enter(&mut *self.raw, &mut self.job.mishap)? else { return Ok(None) };
            match self.raise()? {
                Written::Accepted => return Ok(Some(since)),
                Written::Refused => self.leave()?,
            }
            self.diary.refused += 1;
        }
    }

    fn raise(&mut self) -> Result<Written, Failure> {
        let token = self.gate.lock().and_then(|lock| lock.token());
        match (self.job.check, token) {
            (Check::RaisedToken, Some(token)) => self.account.raise(&mut *self.raw, token),
            (Check::RaisedToken | Check::Token | Check::None, _) => Ok(Written::Accepted),
        }
    }

    /// What the worker waits for in its first deposit if it is the second to enter.
    fn waits_for(&mut self) -> Result<Option<Did>, Failure> {
        match mem::replace(&mut self.job.second, Second::Usual) {
            Second::Until(did) if self.cues.is_second(&mut *self.raw)? => Ok(Some(did)),
            Second::Until(_) | Second::Usual => Ok(None),
        }
    }

    /// The time between the read and the write.
    fn take_time(&mut self, until: Option<Did>) -> Result<(), Failure> {
        let raw = &mut *self.raw;
        if let Mishap::Slow(until, at_most) = self.job.mishap {
            self.job.mishap = Mishap::None;
            return self.cues.await_another(raw, until, at_most);
        }
        thread::sleep(WORK);
        until.map_or(Ok(()), |did| self.cues.await_another(raw, did, AT_MOST))
    }

    fn finish(&mut self, balance: u64) -> Result<Deposit, Failure> {
        let Some(token) = self.check()? else { return Ok(Deposit::Noticed) };
        self.job.mishap.strike(Before::Write)?;
        let raw = &mut *self.raw;
        let written = match (self.job.check, token) {
            (Check::Token | Check::RaisedToken, Token::Of(token)) => {
                self.account.write_fenced(raw, balance + 1, token)?
            }
            (Check::Token | Check::RaisedToken | Check::None, _) => self.account.write(raw, balance + 1)?,
        };
        Ok(match written {
            Written::Accepted => Deposit::Made,
            Written::Refused => Deposit::Refused,
        })
    }

    /// Makes sure that the worker still holds the lock, as far as it can tell; nothing if it does not.
    fn check(&mut self) -> Result<Option<Token>, Failure> {
        let Some(lock) = self.gate.lock() else { return Ok(Some(Token::None)) };
        lock.come_to_check(&mut self.job.mishap)?;
        Ok(lock.is_good().then(|| lock.token().map_or(Token::None, Token::Of)))
    }

    fn note(&mut self, Inside { since, .. }: Inside, deposit: &Deposit) {
        match deposit {
            Deposit::Made => self.diary.made += 1,
            Deposit::Refused => self.diary.refused += 1,
            // It has done nothing since the lock was lost.
            Deposit::Noticed => return self.diary.noticed += 1,
        }
        self.diary.visits.push(Visit::between(self.job.account, since, HostClock.now()));
    }

    fn leave(&mut self) -> Result<(), Failure> {
        let Left { wrong_deletes, wrong_renewals } = self.gate.leave(&mut *self.raw, &mut self.job.mishap)?;
        self.diary.wrong_deletes += wrong_deletes;
        self.diary.wrong_renewals += wrong_renewals;
        Ok(())
    }
}

/// The fencing token of a hold, if locks of its kind have one.
enum Token {
    None,
    Of(FencingToken),
}

/// Starts all workers at the same moment.
pub(crate) fn work_together(workers: Vec<Worker>) -> Result<Diary, Failure> {
    let start = Barrier::new(workers.len());
    thread::scope(|scope| {
        let begin = |worker: Worker| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                worker.work()
            })
        };
        let running: Vec<_> = workers.into_iter().map(begin).collect();
        let diaries = running.into_iter().map(|worker| joined(worker.join()));
        diaries.collect::<Result<Vec<_>, _>>().map(Diary::sum)
    })
}

/// The result of a thread.
pub(crate) fn joined<T>(result: thread::Result<Result<T, Failure>>) -> Result<T, Failure> {
    result.unwrap_or_else(|_| Err(Failure::system("a worker failed", "its thread panicked")))
}
