//! The recipes of the cookbook.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use leasehold::blocking::{Cache, Client, Kit};
use leasehold::fence::redis::Fenced;
use leasehold::fence::sql::{FenceColumn, FenceTable};
use leasehold::kit::{Entry, Found};
use rusqlite::Connection;
use test_support::bounds::within;
use test_support::{RedisServer, temp_dir};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

fn open(folder: &Path) -> Result<Connection, rusqlite::Error> {
    let db = Connection::open(folder.join("data.db"))?;
    db.busy_timeout(Duration::from_secs(30))?;
    Ok(db)
}

fn pay(
    locks: &Client,
    mut db: Connection,
    invoice: i64,
    ask_the_bank: impl Fn(i64) -> Result<String, rusqlite::Error>,
) -> Outcome {
    let name = format!("invoice:{invoice}");
    let guard = locks.mutex(&name).wait(Duration::from_secs(30)).acquire()?;
    let look = db.transaction()?;
    FenceTable::raise(&look, &name, guard.write_token())?;
    let paid =
        look.query_row("SELECT count(*) FROM payment WHERE invoice = ?1", [invoice], |row| row.get::<_, i64>(0))?;
    look.commit()?;
    if paid == 0 {
        let receipt = ask_the_bank(invoice)?;
        let transaction = db.transaction()?;
        FenceTable::raise(&transaction, &name, guard.write_token())?;
        transaction.execute("INSERT INTO payment (invoice, receipt) VALUES (?1, ?2)", (invoice, receipt))?;
        transaction.execute("UPDATE account SET balance = balance - 50 WHERE id = 1", ())?;
        transaction.commit()?;
    }
    guard.release()?;
    Ok(())
}

/// Runs it in threads with a client and a connection each, as processes would.
fn in_threads(folder: &Path, count: usize, run: impl Fn(&Client, Connection) -> Outcome + Sync) -> Outcome {
    let url = format!("sqlite:{}", folder.join("locks.db").display());
    let one = || run(&leasehold::blocking::connect(&url)?, open(folder)?);
    within("the end of the threads", || {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(one)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
        })
    })
}

#[test]
fn a_payment_happens_once() -> Outcome {
    let folder = temp_dir();
    let db = open(folder.path())?;
    db.execute_batch(FenceTable::CREATE)?;
    db.execute_batch(
        "CREATE TABLE payment (invoice INTEGER PRIMARY KEY, receipt TEXT);
         CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (1, 100)",
    )?;
    let asked = AtomicU32::new(0);
    let ask_the_bank = |invoice| {
        asked.fetch_add(1, Ordering::Relaxed);
        Ok(format!("receipt for {invoice}"))
    };
    in_threads(folder.path(), 4, |locks, db| pay(locks, db, 42, ask_the_bank))?;
    let balance: i64 = db.query_row("SELECT balance FROM account", (), |row| row.get(0))?;
    assert_eq!((balance, asked.into_inner()), (50, 1));
    Ok(())
}

fn import(locks: &Client, db: Connection, tenants: &[&str], last: i64) -> Outcome {
    let cursors = FenceColumn::new("tenant", "fence")?;
    for tenant in tenants {
        let lock = locks.mutex(format!("tenant:{tenant}"));
        let Some(guard) = lock.try_acquire()? else { continue };
        cursors.raise(&db, guard.write_token(), &[("name", &tenant)])?;
        let position: i64 = db.query_row("SELECT position FROM tenant WHERE name = ?1", [tenant], |row| row.get(0))?;
        for batch in position + 1..=last {
            guard.check()?;
            cursors.update(&db, guard.fencing_token(), &[("position", &batch)], &[("name", &tenant)])?;
        }
        guard.release()?;
    }
    Ok(())
}

#[test]
fn each_tenant_has_one_writer() -> Outcome {
    let folder = temp_dir();
    let db = open(folder.path())?;
    db.execute_batch(
        "CREATE TABLE tenant (name TEXT PRIMARY KEY, position INTEGER, fence BIGINT NOT NULL DEFAULT 0);
         CREATE TABLE written (tenant TEXT, batch INTEGER, UNIQUE (tenant, batch));
         CREATE TRIGGER log AFTER UPDATE OF position ON tenant BEGIN INSERT INTO written VALUES (new.name, new.position); END;
         INSERT INTO tenant (name, position) VALUES ('acme', 0), ('globex', 0), ('initech', 0)",
    )?;
    in_threads(folder.path(), 3, |locks, db| import(locks, db, &["acme", "globex", "initech"], 5))?;
    let written: i64 = db.query_row("SELECT count(*) FROM written", (), |row| row.get(0))?;
    assert_eq!(written, 15, "each batch once: a second writer would have failed");
    Ok(())
}

struct Rates {
    redis: redis::Client,
}

impl Cache for Rates {
    type Value = String;
    type Error = Box<dyn Error + Send + Sync>;

    fn get(&self, key: &str) -> Result<Option<Found<String>>, Self::Error> {
        let mut redis = self.redis.get_connection()?;
        let (rates, left): (Option<String>, i64) = redis::pipe().get(key).pttl(key).query(&mut redis)?;
        let left = Duration::from_millis(left.try_into().unwrap_or(0));
        Ok(rates.map(|rates| Found::expiring_in(rates, left)))
    }

    fn put(&self, entry: Entry<'_, String>) -> Result<(), Self::Error> {
        let mut redis = self.redis.get_connection()?;
        Ok(Fenced::new(entry.key)?.set_for(entry.token, entry.value, entry.ttl).run(&mut redis)?)
    }
}

fn rates(locks: &Client, cache: &Rates) -> Result<String, Box<dyn Error + Send + Sync>> {
    let flight = locks.single_flight("rates").value_ttl(Duration::from_secs(600)).stale_for(Duration::from_secs(60));
    flight.wait(Duration::from_secs(5)).get_or_compute(cache, fetch_rates)
}

static FETCHED: AtomicU32 = AtomicU32::new(0);

fn fetch_rates() -> Result<String, Box<dyn Error + Send + Sync>> {
    thread::sleep(Duration::from_millis(200));
    Ok(format!("rates {}", FETCHED.fetch_add(1, Ordering::Relaxed)))
}

#[test]
fn the_rates_are_fetched_once() -> Outcome {
    let server = RedisServer::start();
    let one = || {
        let cache = Rates { redis: redis::Client::open(server.url())? };
        rates(&leasehold::blocking::connect(&server.url())?, &cache)
    };
    let found = within("the end of the threads", || {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")).collect::<Vec<_>>()
        })
    });
    for rates in found {
        assert_eq!(rates??, "rates 0");
    }
    let left: i64 = redis::cmd("PTTL").arg("rates").query(&mut server.connection())?;
    assert!(left > 0, "what was put there expires");
    Ok(())
}
