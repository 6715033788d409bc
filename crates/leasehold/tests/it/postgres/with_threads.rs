//! A teller that uses plain threads and the crate postgres.

use leasehold::blocking::Guard;
use leasehold::postgres::{FenceError, Fences, PostgresConfig};
use postgres::{Client, NoTls};

use super::{At, Check, Outcome, PATIENCE, RAISE, READ, TTL, WRITE_UNDER_FENCE, WRITE_WITH_TOKEN, WRITE_WITH_VERSION};

pub(super) fn deposit(url: &str, check: Check, amount: i64, mut at: impl FnMut(At)) -> Outcome {
    let config = PostgresConfig::from_url(url).unwrap();
    let locks = leasehold::blocking::connect(url).unwrap();
    let mut db = Client::connect(url, NoTls).unwrap();
    let guard = locks.mutex("account").ttl(TTL).wait(PATIENCE).acquire().unwrap();
    at(At::Held);
    let outcome = if check == Check::Fence {
        fenced(&config, &mut db, &guard, amount, at)
    } else {
        checked(&mut db, &guard, check, amount, at)
    };
    guard.release().ok();
    outcome
}

fn fenced(config: &PostgresConfig, db: &mut Client, guard: &Guard, amount: i64, mut at: impl FnMut(At)) -> Outcome {
    let mut transaction = match Fences::new(config).begin_blocking(db, guard) {
        Ok(transaction) => transaction,
        Err(FenceError::Refused { name, token }) => {
            assert_eq!((name.as_str(), token), ("account", guard.fencing_token()));
            return Outcome::Refused;
        }
        Err(error) => panic!("{error}"),
    };
    let balance: i64 = transaction.query_one(READ, &[]).unwrap().get(0);
    at(At::Read);
    transaction.execute(WRITE_UNDER_FENCE, &[&(balance + amount)]).unwrap();
    transaction.commit().unwrap();
    Outcome::Written
}

fn checked(db: &mut Client, guard: &Guard, check: Check, amount: i64, mut at: impl FnMut(At)) -> Outcome {
    let token = i64::from(guard.fencing_token());
    if check == Check::RaisedColumn && db.execute(RAISE, &[&token]).unwrap() == 0 {
        return Outcome::Refused;
    }
    let row = db.query_one(READ, &[]).unwrap();
    let (balance, version): (i64, i64) = (row.get(0), row.get(1));
    at(At::Read);
    let (write, compared) =
        if check == Check::Version { (WRITE_WITH_VERSION, version) } else { (WRITE_WITH_TOKEN, token) };
    if db.execute(write, &[&(balance + amount), &compared]).unwrap() == 0 { Outcome::Refused } else { Outcome::Written }
}
