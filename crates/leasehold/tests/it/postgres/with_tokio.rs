//! A teller that uses tokio and the crate tokio-postgres.

use leasehold::Guard;
use leasehold::postgres::{FenceError, Fences, PostgresConfig};
use tokio_postgres::{Client, NoTls};

use super::{At, Check, Outcome, PATIENCE, RAISE, READ, TTL, WRITE_UNDER_FENCE, WRITE_WITH_TOKEN, WRITE_WITH_VERSION};

pub(super) fn deposit(url: &str, check: Check, amount: i64, at: impl FnMut(At)) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(deposits(url, check, amount, at))
}

async fn deposits(url: &str, check: Check, amount: i64, mut at: impl FnMut(At)) -> Outcome {
    let config = PostgresConfig::from_url(url).unwrap();
    let locks = leasehold::connect(url).await.unwrap();
    let (mut db, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let guard = locks.mutex("account").ttl(TTL).wait(PATIENCE).acquire().await.unwrap();
    at(At::Held);
    let outcome = if check == Check::Fence {
        fenced(&config, &mut db, &guard, amount, at).await
    } else {
        checked(&db, &guard, check, amount, at).await
    };
    guard.release().await.ok();
    outcome
}

async fn fenced(
    config: &PostgresConfig,
    db: &mut Client,
    guard: &Guard,
    amount: i64,
    mut at: impl FnMut(At),
) -> Outcome {
    let transaction = match Fences::new(config).begin(db, guard).await {
        Ok(transaction) => transaction,
        Err(FenceError::Refused { name, token }) => {
            assert_eq!((name.as_str(), token), ("account", guard.fencing_token()));
            return Outcome::Refused;
        }
        Err(error) => panic!("{error}"),
    };
    let balance: i64 = transaction.query_one(READ, &[]).await.unwrap().get(0);
    at(At::Read);
    transaction.execute(WRITE_UNDER_FENCE, &[&(balance + amount)]).await.unwrap();
    transaction.commit().await.unwrap();
    Outcome::Written
}

async fn checked(db: &Client, guard: &Guard, check: Check, amount: i64, mut at: impl FnMut(At)) -> Outcome {
    let token = i64::from(guard.fencing_token());
    if check == Check::RaisedColumn && db.execute(RAISE, &[&token]).await.unwrap() == 0 {
        return Outcome::Refused;
    }
    let row = db.query_one(READ, &[]).await.unwrap();
    let (balance, version): (i64, i64) = (row.get(0), row.get(1));
    at(At::Read);
    let (write, compared) =
        if check == Check::Version { (WRITE_WITH_VERSION, version) } else { (WRITE_WITH_TOKEN, token) };
    let changed = db.execute(write, &[&(balance + amount), &compared]).await.unwrap();
    if changed == 0 { Outcome::Refused } else { Outcome::Written }
}
