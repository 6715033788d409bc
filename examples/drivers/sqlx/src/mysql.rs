//! A transaction that is fenced with sqlx, in the database of the lock.
//!
//! Two tellers pay into one account. The first one stops between its read and its write, for longer than its lease.

use std::time::Duration;

use anyhow::{Result, ensure};
use leasehold::FencingToken;
use sqlx::mysql::MySqlPool;
use sqlx::{MySql, Transaction, query, query_scalar};
use test_support::MysqlServer;

const ACCOUNT: &str = "account:1";

/// A transaction under the lock. The statement of docs/book/src/stores/mysql.md comes first.
async fn begin(db: &MySqlPool, token: FencingToken) -> Result<Transaction<'static, MySql>, sqlx::Error> {
    let mut transaction = db.begin().await?;
    query("CALL leasehold_fence(?, ?)").bind(ACCOUNT).bind(i64::from(token)).execute(&mut *transaction).await?;
    Ok(transaction)
}

async fn balance(transaction: &mut Transaction<'static, MySql>) -> Result<i64> {
    Ok(query_scalar("SELECT balance FROM account WHERE id = 1").fetch_one(&mut **transaction).await?)
}

async fn write(mut transaction: Transaction<'static, MySql>, balance: i64) -> Result<()> {
    query("UPDATE account SET balance = ? WHERE id = 1").bind(balance).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let server = MysqlServer::start();
    let db = MySqlPool::connect(&server.url()).await?;
    query("CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)").execute(&db).await?;
    query("INSERT INTO account VALUES (1, 0)").execute(&db).await?;

    let locks = leasehold::connect(&server.url()).await?;
    // `max_hold` ends its lease, as a pause would.
    let first = locks.mutex(ACCOUNT).max_hold(Duration::from_millis(200)).acquire().await?;
    let mut late = begin(&db, first.fencing_token()).await?;
    let read = balance(&mut late).await?;
    let second = locks.mutex(ACCOUNT);
    let waiting = tokio::spawn(async move { second.acquire().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(!waiting.is_finished(), "somebody else got the lock while a transaction was fenced by it");
    write(late, read + 10).await?;

    let guard = waiting.await??;
    let mut transaction = begin(&db, guard.fencing_token()).await?;
    let read = balance(&mut transaction).await?;
    write(transaction, read + 90).await?;
    let refused = begin(&db, first.fencing_token()).await.err();
    let code = refused.as_ref().and_then(|error| error.as_database_error()?.code());
    ensure!(code.as_deref() == Some("LH001"), "the old token was not refused: {refused:?}");
    let balance: i64 = query_scalar("SELECT balance FROM account").fetch_one(&db).await?;
    ensure!(balance == 100, "the balance is {balance}");
    println!("sqlx and MariaDB: nobody got in between, the old token was refused, and the balance is {balance}");
    Ok(guard.release().await?)
}
