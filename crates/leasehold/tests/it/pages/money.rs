//! The recipe about money between two accounts in PostgreSQL.

use std::error::Error;
use std::time::Duration;

use leasehold::{Client, Kit};
use test_support::PostgresServer;
use test_support::bounds::Watchdog;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// The other service.
async fn approve(from: i64, to: i64, amount: i64) -> Outcome {
    tokio::time::sleep(Duration::from_millis(20)).await;
    if from == to || amount < 0 { Err("refused".into()) } else { Ok(()) }
}

async fn transfer(locks: &Client, db: &mut tokio_postgres::Client, from: i64, to: i64, amount: i64) -> Outcome {
    let both =
        locks.all([format!("account:{from}"), format!("account:{to}")]).wait(Duration::from_secs(10)).acquire().await?;
    approve(from, to, amount).await?; // your code: no transaction is open
    let transaction = db.transaction().await?;
    for (name, token) in both.tokens() {
        let fence = "SELECT leasehold.fence($1, $2)"; // before anything is read
        transaction.execute(fence, &[&name.as_str(), &i64::from(token)]).await?;
    }
    let row = transaction.query_one("SELECT balance FROM account WHERE id = $1", &[&from]).await?;
    if row.get::<_, i64>(0) < amount {
        return Err("the balance is too low".into());
    }
    transaction.execute("UPDATE account SET balance = balance - $2 WHERE id = $1", &[&from, &amount]).await?;
    transaction.execute("UPDATE account SET balance = balance + $2 WHERE id = $1", &[&to, &amount]).await?;
    transaction.commit().await?;
    both.release().await?;
    Ok(())
}

async fn connect(url: &str) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let (db, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(db)
}

#[tokio::test(flavor = "multi_thread")]
async fn money_moves_between_two_accounts_in_both_directions_and_none_is_lost() -> Outcome {
    let _bound = Watchdog::over("the transfers");
    let server = PostgresServer::start();
    server.psql("CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL)");
    server.psql("INSERT INTO account VALUES (1, 100), (2, 100)");
    let tasks = [(1, 2, 5), (2, 1, 3), (1, 2, 4), (2, 1, 2)].map(|(from, to, amount)| {
        let url = server.url();
        tokio::spawn(async move {
            let (locks, mut db) = (leasehold::connect(&url).await?, connect(&url).await?);
            for _ in 0..3 {
                transfer(&locks, &mut db, from, to, amount).await?;
            }
            Outcome::Ok(())
        })
    });
    for task in tasks {
        task.await??;
    }
    assert_eq!(server.psql("SELECT balance FROM account ORDER BY id"), "88\n112");
    let mut db = connect(&server.url()).await?;
    let locks = leasehold::connect(&server.url()).await?;
    assert!(transfer(&locks, &mut db, 1, 2, 1_000).await.is_err());
    assert_eq!(server.psql("SELECT sum(balance) FROM account"), "200");
    Ok(())
}
