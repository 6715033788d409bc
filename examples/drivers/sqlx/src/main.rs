//! A fenced write with sqlx. The lock is leasehold's, in a file beside the data.
//!
//! Two holders of a lock write the balance of an account, and the first one comes late.

use std::time::Duration;

use anyhow::{Result, ensure};
use leasehold::{FencingToken, WriteToken};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{query, query_scalar};

/// The statement of docs/book/src/fencing.md. The key finds one row.
const FENCED: &str = "UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2";

/// Whether the fence was raised, by a statement that commits by itself. It comes before anything is read.
async fn raise(db: &SqlitePool, token: WriteToken) -> Result<bool> {
    let raise = "UPDATE account SET fence = $1 WHERE id = $2 AND fence <= $1";
    Ok(query(raise).bind(i64::from(token)).bind(1).execute(db).await?.rows_affected() == 1)
}

/// Whether the balance was written. If not, a later holder has raised the fence: stop.
async fn write(db: &SqlitePool, token: FencingToken, balance: i64) -> Result<bool> {
    let done = query(FENCED).bind(balance).bind(i64::from(token)).bind(1).execute(db).await?;
    Ok(done.rows_affected() == 1)
}

/// The same for what takes several statements: the first one of the transaction raises the fence.
async fn pay(db: &SqlitePool, token: WriteToken, amount: i64) -> Result<bool> {
    let raise = "INSERT INTO leasehold_fence (resource, token) VALUES ($1, $2)
        ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE leasehold_fence.token <= excluded.token";
    let mut transaction = db.begin().await?;
    if query(raise).bind("account:1").bind(i64::from(token)).execute(&mut *transaction).await?.rows_affected() == 0 {
        return Ok(false);
    }
    query("INSERT INTO payment (amount) VALUES ($1)").bind(amount).execute(&mut *transaction).await?;
    query("UPDATE account SET balance = balance - $1").bind(amount).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = SqliteConnectOptions::new().filename(folder.path().join("data.db")).create_if_missing(true);
    let db = SqlitePool::connect_with(options).await?;
    for statement in [
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)",
        "CREATE TABLE payment (amount INTEGER)",
        "INSERT INTO account VALUES (1, 0)",
        "ALTER TABLE account ADD COLUMN fence BIGINT NOT NULL DEFAULT 0",
        "CREATE TABLE leasehold_fence (resource VARCHAR(700) PRIMARY KEY, token BIGINT NOT NULL)",
    ] {
        query(statement).execute(&db).await?;
    }

    let locks = leasehold::connect(&format!("sqlite:{}", folder.path().join("locks.db").display())).await?;
    // `max_hold` ends its lease, as a pause would.
    let late = locks.mutex("account:1").max_hold(Duration::from_millis(200)).acquire().await?;
    ensure!(raise(&db, late.write_token()).await? && write(&db, late.fencing_token(), 10).await?);
    let guard = locks.mutex("account:1").acquire().await?;
    ensure!(raise(&db, guard.write_token()).await?);
    let read: i64 = query_scalar("SELECT balance FROM account").fetch_one(&db).await?;

    ensure!(!write(&db, late.fencing_token(), 11).await?, "a late write got between a read and the write");
    ensure!(write(&db, guard.fencing_token(), read + 90).await? && pay(&db, guard.write_token(), 30).await?);
    ensure!(!pay(&db, late.write_token(), 5).await?, "a late transaction got through");
    let balance: i64 = query_scalar("SELECT balance FROM account").fetch_one(&db).await?;
    ensure!(balance == 70, "the balance is {balance}");
    println!("sqlx: the late holder was refused twice, and the balance is {balance}");
    Ok(guard.release().await?)
}
