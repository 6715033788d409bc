//! A fenced write with diesel. The lock is leasehold's, in a file beside the data.
//!
//! Two holders of a lock write the balance of an account, and the first one comes late.

use std::time::Duration;

use anyhow::{Result, ensure};
use diesel::prelude::*;
use diesel::{insert_into, sql_query, update};
use leasehold::{FencingToken, WriteToken};

diesel::table! {
    account (id) {
        id -> BigInt,
        balance -> BigInt,
        fence -> BigInt,
    }
}

diesel::table! {
    payment (id) {
        id -> BigInt,
        amount -> BigInt,
    }
}

/// Whether the fence was raised, by a statement that commits by itself. It comes before anything is read.
fn raise(db: &mut SqliteConnection, token: WriteToken) -> Result<bool> {
    let token = i64::from(token);
    let row = account::table.find(1).filter(account::fence.le(token));
    Ok(update(row).set(account::fence.eq(token)).execute(db)? == 1)
}

/// Whether the balance was written. If not, a later holder has raised the fence: stop.
fn write(db: &mut SqliteConnection, token: FencingToken, new: i64) -> Result<bool> {
    let token = i64::from(token);
    // The statement of docs/book/src/fencing.md. The key finds one row.
    let row = account::table.find(1).filter(account::fence.le(token));
    Ok(update(row).set((account::balance.eq(new), account::fence.eq(token))).execute(db)? == 1)
}

/// The same for what takes several statements: the first one of the transaction raises the fence.
fn pay(db: &mut SqliteConnection, token: WriteToken, amount: i64) -> Result<bool> {
    use diesel::sql_types::{BigInt, Text};

    let raise = sql_query(
        "INSERT INTO leasehold_fence (resource, token) VALUES (?, ?)
         ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE leasehold_fence.token <= excluded.token",
    );
    let raise = raise.bind::<Text, _>("account:1").bind::<BigInt, _>(i64::from(token));
    db.transaction(|db| {
        if raise.execute(db)? == 0 {
            return Ok(false); // nothing was written
        }
        insert_into(payment::table).values(payment::amount.eq(amount)).execute(db)?;
        update(account::table).set(account::balance.eq(account::balance - amount)).execute(db)?;
        Ok(true)
    })
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut db = SqliteConnection::establish(&folder.path().join("data.db").to_string_lossy())?;
    for statement in [
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)",
        "CREATE TABLE payment (id INTEGER PRIMARY KEY, amount INTEGER)",
        "INSERT INTO account VALUES (1, 0)",
        "ALTER TABLE account ADD COLUMN fence BIGINT NOT NULL DEFAULT 0",
        "CREATE TABLE leasehold_fence (resource VARCHAR(700) PRIMARY KEY, token BIGINT NOT NULL)",
    ] {
        sql_query(statement).execute(&mut db)?;
    }

    let locks = leasehold::blocking::connect(&format!("sqlite:{}", folder.path().join("locks.db").display()))?;
    // `max_hold` ends its lease, as a pause would.
    let late = locks.mutex("account:1").max_hold(Duration::from_millis(200)).acquire()?;
    ensure!(raise(&mut db, late.write_token())? && write(&mut db, late.fencing_token(), 10)?);
    let guard = locks.mutex("account:1").acquire()?;
    ensure!(raise(&mut db, guard.write_token())?);
    let read: i64 = account::table.select(account::balance).first(&mut db)?;

    ensure!(!write(&mut db, late.fencing_token(), 11)?, "a late write got between a read and the write");
    ensure!(write(&mut db, guard.fencing_token(), read + 90)? && pay(&mut db, guard.write_token(), 30)?);
    ensure!(!pay(&mut db, late.write_token(), 5)?, "a late transaction got through");
    let balance: i64 = account::table.select(account::balance).first(&mut db)?;
    ensure!(balance == 70, "the balance is {balance}");
    println!("diesel: the late holder was refused twice, and the balance is {balance}");
    Ok(guard.release()?)
}
