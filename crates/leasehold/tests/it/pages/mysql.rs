//! The code of the page about MySQL and MariaDB.

use std::error::Error;

use leasehold::Kit;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, TxOpts};
use test_support::MysqlServer;
use test_support::bounds::Watchdog;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

const BALANCES: &str = "SELECT balance FROM account ORDER BY id";

async fn connect(url: &str) -> Result<Conn, Box<dyn Error + Send + Sync>> {
    let mut db = Conn::new(Opts::from_url(url)?).await?;
    db.query_drop("CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL)").await?;
    db.query_drop("INSERT INTO account VALUES (7, 100), (8, 100)").await?;
    Ok(db)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balance_changes_in_a_transaction_that_a_guard_fences() -> Outcome {
    let _bound = Watchdog::over("the transaction");
    let server = MysqlServer::start();
    let url = &server.url();
    let (locks, mut db) = (leasehold::connect(url).await?, connect(url).await?);
    let guard = locks.mutex("account:7").acquire().await?;
    let config = leasehold::mysql::MysqlConfig::from_url(url)?; // the URL of the locks
    let fences = leasehold::mysql::Fences::new(&config);
    let mut transaction = fences.begin(&mut db, &guard, TxOpts::default()).await?; // FenceError::Refused: the lock is lost
    let balance: Option<i64> = transaction.query_first("SELECT balance FROM account WHERE id = 7").await?;
    transaction.exec_drop("UPDATE account SET balance = ? WHERE id = 7", (balance.unwrap_or(0) + 50,)).await?;
    transaction.commit().await?;
    guard.release().await?;
    assert_eq!(db.query::<i64, _>(BALANCES).await?, [150, 100]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_has_a_fence_for_each_lock_and_a_token_that_is_late_is_refused() -> Outcome {
    let _bound = Watchdog::over("the transactions");
    let server = MysqlServer::start();
    let (locks, mut db) = (leasehold::connect(&server.url()).await?, connect(&server.url()).await?);
    let both = locks.all(["account:7", "account:8"]).acquire().await?;
    let tokens: Vec<_> = both.tokens().map(|(name, token)| (name.clone(), i64::from(token))).collect();
    let mut transaction = db.start_transaction(TxOpts::default()).await?;
    for (name, token) in both.tokens() {
        transaction.exec_drop("CALL leasehold_fence(?, ?)", (name.as_str(), i64::from(token))).await?;
    }
    transaction.query_drop("UPDATE account SET balance = balance + IF(id = 7, -5, 5)").await?;
    transaction.commit().await?;
    both.release().await?;
    assert_eq!(db.query::<i64, _>(BALANCES).await?, [95, 105]);

    for (name, token) in tokens {
        let mut late = db.start_transaction(TxOpts::default()).await?;
        let refused = late.exec_drop("CALL leasehold_fence(?, ?)", (name.as_str(), token)).await;
        let Err(mysql_async::Error::Server(told)) = refused else { return Err("it is not refused".into()) };
        assert_eq!(told.state, "LH001");
        late.rollback().await?;
    }
    Ok(())
}
