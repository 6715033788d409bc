//! A table that refuses late writes, from the page "Get started":
//! `cargo run -p leasehold --features blocking,fence,sqlite --example deposit 50 30`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::{env, error::Error, thread, time::Duration};

use leasehold::fence::sql::FenceColumn;

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = env::args().skip(1).map(|word| word.parse::<u32>()).collect::<Result<Vec<_>, _>>()?;
    let [amount, pause] = numbers[..] else { return Err("give an amount and a pause in seconds".into()) };
    let db = rusqlite::Connection::open("bank.db")?;
    db.execute_batch(
        "CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, balance INTEGER, fence BIGINT NOT NULL DEFAULT 0);
         INSERT OR IGNORE INTO account VALUES (1, 100, 0)",
    )?;
    let accounts = FenceColumn::new("account", "fence")?;

    let locks = leasehold::blocking::connect("sqlite:locks.db")?;
    let guard = locks.mutex("account:1").acquire()?;
    accounts.raise(&db, guard.write_token(), &[("id", &1)])?; // before anything is read
    let balance: u32 = db.query_row("SELECT balance FROM account WHERE id = 1", (), |row| row.get(0))?;
    println!("token {}, balance {balance}", guard.fencing_token());

    thread::sleep(Duration::from_secs(pause.into())); // a slow network, or a suspended machine

    accounts.update(&db, guard.fencing_token(), &[("balance", &(balance + amount))], &[("id", &1)])?;
    println!("balance {}", balance + amount);
    Ok(guard.release()?)
}
