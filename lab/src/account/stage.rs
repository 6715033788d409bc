//! A stage: a kind of lock, what happens to its first holder, and what is measured.

use serde::Serialize;

use super::balance::Account;
use super::cast::Cast;
use super::diary::Diary;
use super::gate::{Method, Patience};
use super::mishap::Mishap;
use super::worker::{Check, Job, Second};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::story::Promise;

/// A kind of lock, and what happens to its first holder.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Three words at most, and one for `leasehold`.
    pub(crate) label: &'static str,
    /// What is done.
    pub(crate) title: &'static str,
    pub(crate) accounts: Accounts,
    pub(crate) method: Method,
    pub(crate) check: Check,
    pub(crate) cast: Cast,
    /// What happens to the first worker.
    pub(crate) mishap: Mishap,
    /// What the next one waits for.
    pub(crate) second: Second,
    /// Whether no deposit may be lost.
    pub(crate) promise: Promise,
    /// Why the account is wrong, or why it is right.
    pub(crate) why: &'static str,
}

/// How many accounts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accounts {
    One,
    /// Each worker pays into its own.
    OneEach,
}

/// How many workers there are, and how many deposits each makes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Crew {
    pub(crate) workers: u32,
    pub(crate) deposits: u32,
}

/// The result of a stage.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// What the balance should be in the end, that of all accounts together.
    pub(crate) expected: u64,
    /// What it is.
    pub(crate) balance: u64,
    /// Deposits that were reported as successful.
    pub(crate) made: u64,
    /// Successful deposits that are missing from the balance.
    pub(crate) lost: u64,
    /// How many times a worker entered while another was inside the lock of the same account.
    pub(crate) overlaps: u64,
    /// How many times a worker found the lock taken.
    pub(crate) waits: u64,
    /// How many times a worker entered before one that had waited longer.
    pub(crate) passes: u64,
    /// Workers that never got the lock again.
    pub(crate) stuck: u64,
    /// Times that a worker deleted the lock of another.
    pub(crate) wrong_deletes: u64,
    /// Times that a worker renewed the lock of another.
    pub(crate) wrong_renewals: u64,
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
            waits: all.waits,
            passes: all.passes,
            stuck: all.stuck,
            wrong_deletes: all.wrong_deletes,
            wrong_renewals: all.wrong_renewals,
            refused: all.refused,
            noticed: all.noticed,
        }
    }
}

impl Crew {
    /// What the balance should be in the end.
    pub(crate) fn expected(self) -> u64 {
        u64::from(self.workers) * u64::from(self.deposits)
    }
}

impl Stage {
    /// Runs the workers and reads the accounts.
    pub(crate) fn play(&self, ground: &Ground, crew: Crew) -> Result<Outcome, Failure> {
        ground.clear()?;
        let jobs: Vec<_> = (0..crew.workers).map(|number| self.job(ground, crew, number)).collect();
        let all = self.cast.play(&jobs, ground)?;
        let raw = &mut *ground.open_raw()?;
        let balances = (0..crew.workers).map(|number| Account::at(ground, number).read(raw));
        let balance = balances.sum::<Result<_, _>>()?;
        Ok(Outcome::new(crew, balance, &all))
    }

    fn job(&self, ground: &Ground, crew: Crew, number: u32) -> Job {
        let Self { method, check, cast, .. } = *self;
        let (mishap, second) = if number == 0 { (self.mishap, Second::Usual) } else { (Mishap::None, self.second) };
        let account = match self.accounts {
            Accounts::One => 0,
            Accounts::OneEach => number,
        };
        let patience = match cast {
            Cast::WithoutFirst => Patience::Limited,
            Cast::Together
            | Cast::FirstAhead
            | Cast::TwoProcesses
            | Cast::FirstLate
            | Cast::FirstAmong
            | Cast::InLine(_) => Patience::Endless,
        };
        Job {
            ground: ground.clone(),
            number,
            account,
            deposits: crew.deposits,
            method,
            check,
            mishap,
            second,
            patience,
        }
    }
}
