//! Plain threads.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bench_measure::{Meter, Names, Pairs, Plan, Report, Subject, Turn, Work, now, ready, report, write_turns};
use leasehold::blocking::{Client, FromRedis, Mutex, connect};
use lock_core::{Terms, Ttl};
use lock_redis::blocking::SocketTimeouts;

use super::{bare, by_hand, mysql, postgres, sqlite};

/// The name of the lock that all want.
const NAME: &str = "bench:0";

/// A pair of one thread.
type Pair = Box<dyn FnMut() -> Result<()> + Send>;

/// Does the work of a plan on plain threads.
pub(super) fn run(plan: &Plan) -> Result<()> {
    match &plan.work {
        Work::Pairs { tasks, warm_up, span, .. } => measure([*warm_up, *span], pairs(plan, *tasks)?),
        Work::Contend { waiters: 1, warm_up, span, turns } => contend(plan, [*warm_up, *span], turns),
        Work::Contend { .. } | Work::Tries { .. } | Work::Hold { .. } | Work::Wait { .. } => {
            bail!("not measured on plain threads")
        }
    }
}

/// The pairs of all threads, each with a lock of its own.
fn pairs(plan: &Plan, threads: u32) -> Result<Vec<Pair>> {
    let names = Names::Each("bench".to_owned());
    let names = (0..threads).map(|thread| names.name(thread));
    match plan.subject {
        Subject::Bare if sqlite::path(plan).is_some() => {
            names.map(|name| Ok(Box::new(sqlite::pair(plan, &name)?) as Pair)).collect()
        }
        Subject::Bare if postgres::is_wanted_by(plan) => {
            names.map(|name| Ok(Box::new(postgres::pair(plan, &name)?) as Pair)).collect()
        }
        Subject::Bare if mysql::is_wanted_by(plan) => {
            names.map(|name| Ok(Box::new(mysql::pair(plan, &name)?) as Pair)).collect()
        }
        Subject::Bare => names.map(|name| Ok(Box::new(bare_pair(plan, &name)?) as Pair)).collect(),
        Subject::ByHand => names.map(|name| Ok(Box::new(hand_pair(plan, &name)?) as Pair)).collect(),
        Subject::Leasehold => {
            let client = connect(plan.server()?)?;
            Ok(names.map(|name| Box::new(our_pair(client.mutex(name).ttl(plan.ttl))) as Pair).collect())
        }
        Subject::ReadByHand
        | Subject::PermitByHand
        | Subject::Read
        | Subject::Permit
        | Subject::Chain0
        | Subject::Pool
        | Subject::SixteenthHeld
        | Subject::OneReplica
        | Subject::TwoReplicas
        | Subject::Dwell
        | Subject::Rslock
        | Subject::RslockEager => {
            bail!("not measured on plain threads")
        }
    }
}

fn measure([warm_up, span]: [Duration; 2], mut pairs: Vec<Pair>) -> Result<()> {
    all_pairs(warm_up, &mut pairs);
    ready()?;
    let meter = Meter::start();
    let Pairs { times, failed } = all_pairs(span, &mut pairs);
    let (elapsed, processor) = meter.read();
    let mut found = Report { failed, elapsed, processor, ..Report::default() };
    found.set_times(times);
    report(found)
}

/// Takes turns with other processes.
fn contend(plan: &Plan, [warm_up, span]: [Duration; 2], turns: &Path) -> Result<()> {
    let client = client(plan)?;
    let mutex = client.mutex(NAME).ttl(plan.ttl);
    all_turns(&mutex, warm_up);
    ready()?;
    let meter = Meter::start();
    let (had, failed) = all_turns(&mutex, span);
    let (elapsed, processor) = meter.read();
    write_turns(turns, &had)?;
    report(Report { done: had.len() as u64, failed, begun: meter.begun(), elapsed, processor, ..Report::default() })
}

fn client(plan: &Plan) -> Result<Client> {
    let url = plan.server()?;
    if plan.subject == Subject::Leasehold {
        return Ok(connect(url)?);
    }
    ensure!(plan.subject == Subject::Pool, "not measured on plain threads");
    let timeouts = Box::new(SocketTimeouts::new(Duration::from_secs(1)));
    let pool = r2d2::Pool::builder().connection_customizer(timeouts).build(redis::Client::open(url)?)?;
    Ok(Client::from_pool(pool).push(url).connect()?)
}

fn all_turns(mutex: &Mutex, span: Duration) -> (Vec<Turn>, u64) {
    let until = now() + span.as_nanos() as u64;
    let (mut turns, mut failed) = (Vec::new(), 0);
    while now() < until {
        let Ok(guard) = mutex.acquire() else {
            failed += 1;
            continue;
        };
        turns.push(Turn { waiter: 0, acquired: now(), released: now() });
        failed += u64::from(guard.release().is_err());
    }
    (turns, failed)
}

fn all_pairs(span: Duration, pairs: &mut [Pair]) -> Pairs {
    let until = now() + span.as_nanos() as u64;
    thread::scope(|scope| {
        let threads: Vec<_> = pairs.iter_mut().map(|pair| scope.spawn(move || pairs_until(until, pair))).collect();
        let mut all = Pairs::default();
        for thread in threads {
            let Pairs { times, failed } = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            all.times.extend(times);
            all.failed += failed;
        }
        all
    })
}

fn pairs_until(until: u64, pair: &mut Pair) -> Pairs {
    let mut pairs = Pairs::default();
    while now() < until {
        let begun = now();
        pairs.count(begun, pair());
    }
    pairs
}

fn bare_pair(plan: &Plan, name: &str) -> Result<impl FnMut() -> Result<()> + use<>> {
    let mut connection = redis::Client::open(plan.server()?)?.get_connection()?;
    for load in bare::Commands::scripts() {
        load.exec(&mut connection)?;
    }
    let commands = bare::Commands::new(name, plan.ttl);
    Ok(move || {
        let value = bare::Commands::value()?;
        commands.acquire(&value).query::<Option<String>>(&mut connection)?.context("the lock is held")?;
        let deleted: i64 = commands.release(&value).query(&mut connection)?;
        ensure!(deleted == 1, "the lock was lost");
        Ok(())
    })
}

fn hand_pair(plan: &Plan, name: &str) -> Result<impl FnMut() -> Result<()> + use<>> {
    let client = redis::Client::open(plan.server()?)?;
    let mut connection = client.get_connection()?;
    lock_redis::by_hand::ByHand::load().exec(&mut connection)?;
    let commands = by_hand::Commands::new(&client, name, Terms::exclusive(Ttl::new(plan.ttl)?))?;
    Ok(move || {
        let owner = lock_host::new_owner()?;
        let answer = commands.acquire(owner)?.query(&mut connection)?;
        ensure!(by_hand::is_granted(answer)?, "the lock is held");
        let released: i64 = commands.release(owner)?.query(&mut connection)?;
        ensure!(released == 1, "the lock was lost");
        Ok(())
    })
}

fn our_pair(mutex: Mutex) -> impl FnMut() -> Result<()> {
    move || Ok(mutex.acquire()?.release()?)
}
