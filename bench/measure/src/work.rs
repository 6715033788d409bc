//! The loops of a measured process.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::task::{JoinSet, spawn_blocking};

use crate::{Client, Ending, Lock, Meter, Names, Plan, Report, Runtime, Turn, Work, now, ready, report, write_turns};

/// How long waiters are left alone until they surely wait.
const SETTLE: Duration = Duration::from_millis(300);
/// How long to leave for the answers to some claims before the next claims are sent.
const ANSWERED: Duration = Duration::from_millis(10);
/// How many locks a task tries in turn. Names sort the first locks of all tasks before the others, so a process that holds as many
/// locks as there are tasks holds one lock of each task.
pub const LOCKS_OF_A_TASK: u32 = 16;
/// How many locks a process asks for at a time if it wants many. Few, so that the memory of requests in flight does not count as memory of
/// the locks.
const AT_ONCE: usize = 64;

/// Does the work of a plan with the client that `open` connects.
///
/// # Errors
/// If there is no runtime, no connection, or nobody to tell what was found out.
///
/// # Blocking
/// Until the work is done.
pub fn run<C: Client>(plan: &Plan, open: impl Future<Output = Result<C>>) -> Result<()> {
    let mut builder = match plan.runtime {
        Runtime::CurrentThread => tokio::runtime::Builder::new_current_thread(),
        Runtime::TwoThreads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(2);
            builder
        }
        Runtime::Blocking => bail!("plain threads have no runtime"),
    };
    builder.enable_all().build()?.block_on(async {
        let client = open.await?;
        match plan.work.clone() {
            Work::Pairs { tasks, ending, warm_up, span } => pairs(&client, tasks, ending, [warm_up, span]).await,
            Work::Tries { tasks, warm_up, span } => tries(&client, tasks, [warm_up, span]).await,
            Work::Contend { waiters, warm_up, span, turns } => {
                contend(&client, waiters, [warm_up, span]).await.and_then(|(found, had)| {
                    write_turns(&turns, &had)?;
                    report(found)
                })
            }
            Work::Hold { locks, span } => hold(&client, locks, span).await,
            Work::Wait { waiters, names } => wait(&client, waiters, &names).await,
        }
    })
}

/// The results of a task's pairs.
#[derive(Debug, Default)]
pub struct Pairs {
    /// What each took, in nanoseconds.
    pub times: Vec<u64>,
    /// How many failed.
    pub failed: u64,
}

impl Pairs {
    /// Counts one that began at `begun`.
    pub fn count(&mut self, begun: u64, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.times.push(now() - begun),
            Err(_) => self.failed += 1,
        }
    }
}

async fn pairs<C: Client>(client: &C, tasks: u32, ending: Ending, spans: [Duration; 2]) -> Result<()> {
    let locks = locks(client, tasks, &Names::Each("bench".to_owned()))?;
    let [warm_up, span] = spans;
    all_pairs(&locks, ending, warm_up).await?;
    pause().await?;
    let meter = Meter::start();
    let Pairs { times, failed } = all_pairs(&locks, ending, span).await?;
    let (elapsed, processor) = meter.read();
    let mut found = Report { failed, elapsed, processor, ..Report::default() };
    found.set_times(times);
    report(found)
}

async fn all_pairs<L: Lock>(locks: &[Arc<L>], ending: Ending, span: Duration) -> Result<Pairs> {
    let until = now() + nanos(span);
    let mut tasks = JoinSet::new();
    for lock in locks {
        let lock = Arc::clone(lock);
        tasks.spawn(async move {
            let mut pairs = Pairs::default();
            while now() < until {
                let begun = now();
                pairs.count(begun, pair(&*lock, ending).await);
            }
            pairs
        });
    }
    joined(tasks).await
}

async fn tries<C: Client>(client: &C, tasks: u32, [warm_up, span]: [Duration; 2]) -> Result<()> {
    let all = locks(client, tasks * LOCKS_OF_A_TASK, &Names::Each("bench".to_owned()))?;
    let of_task = |task| all.iter().skip(task).step_by(tasks as usize).cloned().collect();
    let rounds: Vec<Vec<_>> = (0..tasks as usize).map(of_task).collect();
    all_tries(&rounds, warm_up).await?;
    pause().await?;
    let meter = Meter::start();
    let Pairs { times, failed } = all_tries(&rounds, span).await?;
    let (elapsed, processor) = meter.read();
    let mut found = Report { failed, elapsed, processor, ..Report::default() };
    found.set_times(times);
    report(found)
}

async fn all_tries<L: Lock>(rounds: &[Vec<Arc<L>>], span: Duration) -> Result<Pairs> {
    let until = now() + nanos(span);
    let mut tasks = JoinSet::new();
    for (number, locks) in rounds.iter().enumerate() {
        let locks = locks.clone();
        tasks.spawn(async move {
            let mut pairs = Pairs::default();
            // Tasks begin at different locks, so that at any time about the same share of them finds a lock held.
            for lock in locks.iter().cycle().skip(number) {
                let begun = now();
                if begun >= until {
                    break;
                }
                if let Some(outcome) = try_pair(&**lock).await.transpose() {
                    pairs.count(begun, outcome);
                }
            }
            pairs
        });
    }
    joined(tasks).await
}

/// Nothing if somebody else holds the lock.
async fn try_pair<L: Lock>(lock: &L) -> Result<Option<()>> {
    match lock.try_acquire().await? {
        Some(held) => lock.release(held).await.map(Some),
        None => Ok(None),
    }
}

async fn joined(mut tasks: JoinSet<Pairs>) -> Result<Pairs> {
    let mut all = Pairs::default();
    while let Some(task) = tasks.join_next().await {
        let Pairs { times, failed } = task?;
        all.times.extend(times);
        all.failed += failed;
    }
    Ok(all)
}

async fn pair<L: Lock>(lock: &L, ending: Ending) -> Result<()> {
    let held = lock.acquire().await?;
    match ending {
        Ending::Awaited => lock.release(held).await,
        Ending::Dropped => lock.let_go(held).await,
    }
}

async fn contend<C: Client>(client: &C, waiters: u32, spans: [Duration; 2]) -> Result<(Report, Vec<Turn>)> {
    let locks = locks(client, waiters, &Names::One("bench".to_owned()))?;
    let [warm_up, span] = spans;
    all_turns(&locks, warm_up).await?;
    pause().await?;
    let meter = Meter::start();
    let (turns, failed) = all_turns(&locks, span).await?;
    let (elapsed, processor) = meter.read();
    let begun = meter.begun();
    Ok((Report { done: turns.len() as u64, failed, begun, elapsed, processor, ..Report::default() }, turns))
}

async fn all_turns<L: Lock>(locks: &[Arc<L>], span: Duration) -> Result<(Vec<Turn>, u64)> {
    let until = now() + nanos(span);
    let mut tasks = JoinSet::new();
    for (waiter, lock) in (0..).zip(locks) {
        let lock = Arc::clone(lock);
        tasks.spawn(async move {
            let (mut turns, mut failed) = (Vec::new(), 0);
            while now() < until {
                let Ok(held) = lock.acquire().await else {
                    failed += 1;
                    continue;
                };
                let acquired = now();
                // The critical section is empty: both moments are the same but for reading the clock.
                turns.push(Turn { waiter, acquired, released: now() });
                failed += u64::from(lock.release(held).await.is_err());
            }
            (turns, failed)
        });
    }
    let mut all = (Vec::new(), 0);
    while let Some(task) = tasks.join_next().await {
        let (turns, failed) = task?;
        all.0.extend(turns);
        all.1 += failed;
    }
    Ok(all)
}

async fn hold<C: Client>(client: &C, count: u32, span: Duration) -> Result<()> {
    let locks = locks(client, count, &Names::Each("bench".to_owned()))?;
    // Whatever a client needs at all is there before the memory of the locks is looked at.
    let first = client.lock("first")?;
    first.release(first.acquire().await?).await?;
    pause().await?;
    let held = acquire_all(&locks).await?;
    let mut keeping = JoinSet::new();
    for (lock, held) in &held {
        let (lock, held) = (Arc::clone(lock), Arc::clone(held));
        if C::Lock::RENEWS_BY_ITSELF {
            continue;
        }
        keeping.spawn(async move { lock.keep(&held).await });
    }
    pause().await?;
    let meter = Meter::start();
    tokio::time::sleep(span).await;
    let (elapsed, processor) = meter.read();
    let mut lost = held.iter().filter(|(lock, held)| !lock.is_held(held)).count();
    while keeping.try_join_next().is_some() {
        lost += 1;
    }
    report(Report { done: u64::from(count), failed: lost as u64, elapsed, processor, ..Report::default() })?;
    // What is still held is not given back: the bench ends this process.
    pause().await
}

type Kept<L> = (Arc<L>, Arc<<L as Lock>::Held>);

async fn acquire_all<L: Lock>(locks: &[Arc<L>]) -> Result<Vec<Kept<L>>> {
    let mut all = Vec::with_capacity(locks.len());
    for some in locks.chunks(AT_ONCE) {
        let mut tasks = JoinSet::new();
        for lock in some {
            let lock = Arc::clone(lock);
            tasks.spawn(async move { lock.acquire().await.map(|held| (lock, Arc::new(held))) });
        }
        while let Some(task) = tasks.join_next().await {
            all.push(task??);
        }
    }
    Ok(all)
}

async fn wait<C: Client>(client: &C, waiters: u32, names: &Names) -> Result<()> {
    let locks = locks(client, waiters, names)?;
    pause().await?;
    let mut tasks = JoinSet::new();
    for some in locks.chunks(AT_ONCE) {
        for lock in some {
            let lock = Arc::clone(lock);
            tasks.spawn(async move {
                let held = lock.acquire().await?;
                let first_held = now();
                lock.release(held).await.map(|()| first_held)
            });
        }
        tokio::time::sleep(ANSWERED).await;
    }
    tokio::time::sleep(SETTLE).await;
    pause().await?;
    let first = tasks.join_next().await.context("nobody waits")?;
    report(Report { done: 1, first_held: first??, ..Report::default() })?;
    pause().await
}

/// Waits until the bench lets this process continue; other threads keep running meanwhile.
async fn pause() -> Result<()> {
    spawn_blocking(ready).await?
}

fn locks<C: Client>(client: &C, count: u32, names: &Names) -> Result<Vec<Arc<C::Lock>>> {
    (0..count).map(|number| client.lock(&names.name(number)).map(Arc::new)).collect()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
