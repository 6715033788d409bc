//! A worker that imports records for several tenants, on a thread for each. Its locks and its data share an r2d2 pool of Redis
//! connections.
//!
//! Start it on several machines: each tenant has one writer at a time, which imports each record once and in order. The machines
//! take turns, and if one of them stops, the others go on.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a service reports to its terminal or its supervisor")]

use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result, ensure};
use leasehold::blocking::{CancelToken, Client, FromRedis, Guard};
use leasehold::fence::redis::Fenced;
use r2d2::{CustomizeConnection, Pool};
use redis::{Commands, Connection, RedisError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long nobody imports for a tenant after a machine has died.
const TTL: Duration = Duration::from_secs(5);

/// How many records a machine imports before it lets the next one have its turn.
const RECORDS_IN_A_TURN: usize = 10;

/// How long a thread waits after its turn, or after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// How long any request to Redis may take.
const REDIS_WITHIN: Duration = Duration::from_secs(2);

struct Worker {
    pool: Pool<redis::Client>,
    locks: Client,
    stop: CancelToken,
    fetch_takes: Duration,
}

fn main() -> Result<()> {
    let tenants: Vec<String> = env::args().skip(1).collect();
    ensure!(!tenants.is_empty(), "name the tenants: threads-r2d2 TENANT...");
    let url = setting("REDIS_URL", "redis://127.0.0.1");
    let size = u32::try_from(tenants.len())?;
    let pool = Pool::builder().max_size(size).connection_timeout(REDIS_WITHIN).connection_customizer(Box::new(Limits));
    let pool = pool.build(redis::Client::open(url.as_str())?)?;
    let locks = Client::from_pool(pool.clone()).push(url).connect()?; // renews over connections of its own
    let fetch_takes = Duration::from_millis(setting("FETCH_TAKES_MS", "50").parse()?);
    let worker = Worker { pool, locks, stop: CancelToken::new(), fetch_takes };

    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    println!("importing for {}", tenants.join(", "));
    thread::scope(|scope| {
        for tenant in &tenants {
            scope.spawn(|| worker.serve(tenant));
        }
        signals.forever().next();
        worker.stop.cancel(); // ends the waits for locks, and the turns with their next record
    });
    worker.locks.close(); // all locks are released; this waits until Redis has confirmed it
    Ok(())
}

fn setting(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_owned())
}

impl Worker {
    fn serve(&self, tenant: &str) {
        while !self.stop.is_cancelled() {
            if let Err(error) = self.take_turn(tenant)
                && !self.stop.is_cancelled()
            {
                eprintln!("{tenant}: {}", explained(&error));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits behind the other machines, imports for a while, and lets go.
    fn take_turn(&self, tenant: &str) -> Result<()> {
        let lock = self.locks.mutex(format!("import:{tenant}")).ttl(TTL).why("import");
        let guard = lock.cancelled_by(&self.stop).acquire()?;
        self.import(tenant, &guard)?;
        guard.release().context("the records were written, because the fence let them in")
    }

    fn import(&self, tenant: &str, guard: &Guard) -> Result<()> {
        let (token, imported) = (guard.fencing_token(), Fenced::new(&format!("tenant:{tenant}"))?);
        let raised = imported.raise(guard.write_token()).run(&mut *self.pool.get()?);
        raised.context("the fence was not raised")?; // from now on, an earlier machine cannot write between what is read and written here
        let position = imported.hget(token, "position").run(&mut *self.pool.get()?);
        let first: usize = position.context("the position was not read")?.unwrap_or(0);
        for position in first..first + RECORDS_IN_A_TURN {
            if self.stop.is_cancelled() {
                break;
            }
            guard.check()?; // stops early if the lock was lost; the fence would stop it in any case
            let Some(record) = self.fetch(tenant, position).context("a record was not fetched")? else { break };
            // The record and the position are one write, so that a machine that dies loses and repeats nothing.
            let fields = [(position.to_string(), record), ("position".to_owned(), (position + 1).to_string())];
            let written = imported.hset(token, &fields).run(&mut *self.pool.get()?);
            written.context("a record may not have been written")?;
        }
        Ok(())
    }

    /// Stands for a slow service that has the records, and counts what it is asked for.
    fn fetch(&self, tenant: &str, position: usize) -> Result<Option<String>> {
        let mut redis = self.pool.get()?;
        let record: Option<String> = redis.lindex(format!("source:{tenant}"), isize::try_from(position)?)?;
        if record.is_some() {
            thread::sleep(self.fetch_takes);
            let () = redis.incr(format!("source:{tenant}:fetched"), 1)?;
        }
        Ok(record)
    }
}

/// What an error says. Of a request without an answer, the system only says that its resource is temporarily unavailable.
fn explained(error: &anyhow::Error) -> String {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<RedisError>());
    if causes.any(RedisError::is_timeout) {
        return format!("{error}: Redis did not answer within {REDIS_WITHIN:?}");
    }
    format!("{error:#}")
}

/// Limits each request: the pool limits only how long it takes to get a connection.
#[derive(Debug)]
struct Limits;

impl CustomizeConnection<Connection, RedisError> for Limits {
    fn on_acquire(&self, connection: &mut Connection) -> Result<(), RedisError> {
        connection.set_read_timeout(Some(REDIS_WITHIN))?;
        connection.set_write_timeout(Some(REDIS_WITHIN))
    }
}
