//! A worker: it reads the balance, works for a moment, and writes the balance plus one.

use std::mem;
use std::thread;
use std::time::Duration;

use lock_host::{Clock, HostClock};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use super::super::ground::Ground;
use super::super::raw::Raw;
use super::balance::{Account, Written};
use super::diary::{Diary, Visit};
use super::gate::{Gate, LastEntry, Left, Method, Pass};
use crate::exit::Failure;

/// How long a deposit takes: from the read to the write.
pub(crate) const WORK: Duration = Duration::from_millis(50);

/// What happens to a worker in its first deposit.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) enum Mishap {
    /// Nothing.
    #[default]
    None,
    /// It crashes while it is inside.
    Crash,
    /// The deposit takes this long.
    Slow(Duration),
    /// Its process is stopped just before the write, after the last check of the lease.
    Stop,
}

/// What the account checks at a write.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Check {
    /// Nothing.
    None,
    /// The fencing token.
    Token,
}

/// What a worker is to do. Passed to other processes through pipes only: the ground may contain a password.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) ground: Ground,
    /// Unique among the workers.
    pub(crate) number: u32,
    pub(crate) deposits: u32,
    pub(crate) method: Method,
    pub(crate) check: Check,
    pub(crate) mishap: Mishap,
}

/// A worker with its own connections, as if it were alone on its machine.
pub(crate) struct Worker {
    ground: Ground,
    raw: Box<dyn Raw>,
    gate: Gate,
    account: Account,
    deposits: u32,
    check: Check,
    mishap: Mishap,
    pass: Option<Pass>,
    diary: Diary,
}

/// The result of a deposit.
enum Deposit {
    Made,
    /// It has to be made again.
    Undone,
    /// The worker makes no more.
    Ended,
}

impl Worker {
    /// Connects.
    pub(crate) fn new(job: &Job, last_entry: &LastEntry) -> Result<Self, Failure> {
        let Job { ground, number, deposits, method, check, mishap } = job;
        Ok(Self {
            // First, since it prepares TLS if the store needs it.
            gate: Gate::new(*method, ground, u64::from(*number), last_entry.clone())?,
            raw: ground.open_raw()?,
            account: Account::at(ground),
            ground: ground.clone(),
            deposits: *deposits,
            check: *check,
            mishap: *mishap,
            pass: None,
            diary: Diary::default(),
        })
    }

    /// Enters for the first deposit, before the other workers.
    pub(crate) fn go_first(mut self) -> Result<Self, Failure> {
        self.pass = self.gate.enter(&mut *self.raw)?;
        Ok(self)
    }

    /// Makes all its deposits.
    pub(crate) fn work(mut self) -> Result<Diary, Failure> {
        while self.diary.made < u64::from(self.deposits) {
            match self.deposit()? {
                Deposit::Made => self.diary.made += 1,
                Deposit::Undone => {}
                Deposit::Ended => break,
            }
        }
        Ok(self.diary)
    }

    fn deposit(&mut self) -> Result<Deposit, Failure> {
        let mishap = mem::take(&mut self.mishap);
        let Some(pass) = self.enter()? else {
            self.diary.stuck = 1;
            return Ok(Deposit::Ended);
        };
        let balance = self.account.read(&mut *self.raw)?;
        thread::sleep(if let Mishap::Slow(long) = mishap { long } else { WORK });
        if let Mishap::Crash = mishap {
            self.diary.visits.push(Visit::between(pass.since, HostClock.now()));
            return Ok(Deposit::Ended);
        }
        let deposit = self.finish(balance, &pass, mishap)?;
        self.diary.visits.push(Visit::between(pass.since, HostClock.now()));
        if self.gate.leave(pass, &mut *self.raw)? == Left::FreedAnother {
            self.diary.freed_others += 1;
        }
        Ok(deposit)
    }

    fn enter(&mut self) -> Result<Option<Pass>, Failure> {
        match self.pass.take() {
            Some(pass) => Ok(Some(pass)),
            None => self.gate.enter(&mut *self.raw),
        }
    }

    fn finish(&mut self, balance: u64, pass: &Pass, mishap: Mishap) -> Result<Deposit, Failure> {
        if !pass.is_good() {
            self.diary.noticed += 1;
            return Ok(Deposit::Undone);
        }
        if let Mishap::Stop = mishap {
            stop_this_process()?;
        }
        let _open = self.ground.stay_open();
        let raw = &mut *self.raw;
        let written = match (self.check, pass.token()) {
            (Check::Token, Some(token)) => self.account.write_fenced(raw, balance + 1, token)?,
            (Check::Token | Check::None, _) => self.account.write(raw, balance + 1)?,
        };
        match written {
            Written::Accepted => Ok(Deposit::Made),
            Written::Refused => {
                self.diary.refused += 1;
                Ok(Deposit::Undone)
            }
        }
    }
}

/// Returns when the process is continued. Its other threads are stopped as well.
fn stop_this_process() -> Result<(), Failure> {
    kill_process(getpid(), Signal::STOP).map_err(|error| Failure::system("cannot stop the worker", error))
}
