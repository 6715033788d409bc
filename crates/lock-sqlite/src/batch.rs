//! Requests that share a transaction, and so one commit.

use std::time::Duration;

use rusqlite::Connection;

use crate::error::Fault;
use crate::queue::{Queue, Waiting};
use crate::session::{Access, Ask, Failure};
use crate::settings::Settings;
use crate::transaction::Transaction;
use crate::watcher::Watcher;

/// How many requests share a transaction at most.
const BATCH_MAX: usize = 64;

/// For how long a transaction takes in further requests. Meanwhile, other processes cannot write.
///
/// Chosen: about as long as a commit takes.
const BATCH_TIME: Duration = Duration::from_millis(2);

/// The requests of one transaction. None is answered before that transaction has ended.
pub(crate) struct Batch<'a, L> {
    settings: &'a Settings,
    watcher: &'a Watcher,
    requests: Vec<Waiting<L>>,
}

/// Whether a request is part of its transaction.
enum Part {
    Kept,
    Undone,
}

impl<'a, L> Batch<'a, L> {
    pub(crate) fn new(settings: &'a Settings, watcher: &'a Watcher, first: Waiting<L>) -> Self {
        Self { settings, watcher, requests: vec![first] }
    }

    /// Does the work of the first request and, in a writing transaction, of the next ones in line that write. A reading one takes
    /// in no others: it shows only commits from before it began, and another commit may have been answered before they were asked.
    ///
    /// # Errors
    /// If the first request fails, or all of SQLite's transaction was undone: nothing may be committed. A later request that
    /// fails is undone and put back. It begins the next batch, and fails there alone.
    pub(crate) fn work(&mut self, db: &Connection, ask: &Ask, queue: &Queue<L>) -> Result<(), Fault> {
        let until = self.settings.timing.now() + BATCH_TIME;
        self.work_on_last(db)?;
        while ask.access == Access::Write
            && self.requests.len() < BATCH_MAX
            && self.settings.timing.now() < until
            && let Some(next) = queue.next_that_writes()
        {
            self.requests.push(next);
            match apart(db, || self.work_on_last(db))? {
                Part::Kept => {}
                Part::Undone => {
                    self.requests.pop().into_iter().for_each(|failed| queue.put_back(failed));
                    break;
                }
            }
        }
        Ok(())
    }

    fn work_on_last(&mut self, db: &Connection) -> Result<(), Fault> {
        // Each request reads the clock anew: it may have been handed out just now, and its lease must last from then.
        let transaction = Transaction::new(db, self.settings);
        self.requests.last_mut().map_or(Ok(()), |last| last.request.work(&transaction, self.watcher))
    }

    /// Answers all requests with the end of the transaction.
    pub(crate) fn answer(self, end: &Result<(), Failure>) {
        for Waiting { request, lead } in self.requests {
            let operation = request.ask().operation;
            let explain = |failure: &Failure| failure.explain(operation, &self.settings.path);
            request.answer(end.as_ref().map_err(explain).copied(), self.watcher);
            drop(lead);
        }
    }
}

/// Does work that can be undone without the rest of its transaction.
///
/// # Errors
/// That of the work, if nothing is left of the whole transaction: SQLite undoes all of it if a disk is full.
fn apart(db: &Connection, work: impl FnOnce() -> Result<(), Fault>) -> Result<Part, Fault> {
    let run = |sql| db.prepare_cached(sql)?.execute(()).map(drop);
    run("SAVEPOINT request")?;
    let part = match work() {
        Ok(()) => Part::Kept,
        Err(fault) => run("ROLLBACK TO request").map(|()| Part::Undone).map_err(|_| fault)?,
    };
    run("RELEASE request")?;
    Ok(part)
}

#[cfg(test)]
mod tests;
