//! A transaction that is fenced with diesel, in the database of the lock.
//!
//! Two tellers pay into one account. The first one stops between its read and its write, for longer than its lease.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Text};
use diesel::{sql_query, update};
use leasehold::FencingToken;
use leasehold::blocking;
use test_support::PostgresServer;

const ACCOUNT: &str = "account:1";

diesel::table! {
    account (id) {
        id -> BigInt,
        balance -> BigInt,
    }
}

/// Pays in under the lock. The statement of docs/book/src/stores/postgres.md comes first.
fn pay(db: &mut PgConnection, token: FencingToken, amount: i64, pause: Duration) -> Result<(), Error> {
    db.transaction(|db| {
        let fence = sql_query("SELECT leasehold.fence($1, $2)");
        fence.bind::<Text, _>(ACCOUNT).bind::<BigInt, _>(i64::from(token)).execute(db)?;
        let read: i64 = account::table.find(1).select(account::balance).first(db)?;
        thread::sleep(pause);
        update(account::table.find(1)).set(account::balance.eq(read + amount)).execute(db)?;
        Ok(())
    })
}

fn main() -> Result<()> {
    let server = PostgresServer::start();
    let mut db = PgConnection::establish(&server.url())?;
    sql_query("CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)").execute(&mut db)?;
    sql_query("INSERT INTO account VALUES (1, 0)").execute(&mut db)?;

    let locks = blocking::connect(&server.url())?;
    // `max_hold` ends its lease, as a pause would.
    let first = locks.mutex(ACCOUNT).max_hold(Duration::from_millis(200)).acquire()?;
    let (token, url) = (first.fencing_token(), server.url());
    let late = thread::spawn(move || -> Result<()> {
        Ok(pay(&mut PgConnection::establish(&url)?, token, 10, Duration::from_secs(2))?)
    });
    thread::sleep(Duration::from_secs(1));
    let guard = locks.mutex(ACCOUNT).acquire()?;
    ensure!(late.is_finished(), "somebody else got the lock while a transaction was fenced by it");
    late.join().expect("the first teller panicked")?;

    pay(&mut db, guard.fencing_token(), 90, Duration::ZERO)?;
    let refused = pay(&mut db, token, 5, Duration::ZERO).unwrap_err().to_string();
    ensure!(refused.contains("is not held with the token"), "the old token was not refused: {refused}");
    let balance: i64 = account::table.select(account::balance).first(&mut db)?;
    ensure!(balance == 100, "the balance is {balance}");
    println!("diesel: nobody got in between, the old token was refused, and the balance is {balance}");
    Ok(guard.release()?)
}
