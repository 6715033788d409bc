//! The page about fencing.

use std::cell::Cell;
use std::error::Error;
use std::sync::Arc;

use leasehold::blocking::{Guard, PermitGuard};
use leasehold::fence::Gate;
use leasehold::fence::http::{FENCING_TOKEN, FencingLayer, raise};
use leasehold::fence::redis::Fenced;
use leasehold::fence::sql::{FenceColumn, FenceTable};
use test_support::RedisServer;
use tower_layer::Layer;

fn rows(db: rusqlite::Connection, guard: &Guard) -> Result<rusqlite::Connection, Box<dyn Error>> {
    let accounts = FenceColumn::new("account", "fence")?;
    db.execute_batch(&accounts.add_column())?;

    accounts.raise(&db, guard.write_token(), &[("id", &1)])?;
    let balance: i64 = db.query_row("SELECT balance FROM account WHERE id = 1", (), |row| row.get(0))?;
    accounts.update(&db, guard.fencing_token(), &[("balance", &(balance + 50))], &[("id", &1)])?;
    Ok(db)
}

fn transactions(mut db: rusqlite::Connection, guard: &Guard) -> Result<rusqlite::Connection, Box<dyn Error>> {
    db.execute_batch(FenceTable::CREATE)?;
    let transaction = db.transaction()?;
    FenceTable::raise(&transaction, "invoice:42", guard.write_token())?;
    transaction.execute("INSERT INTO payment (invoice, amount) VALUES (42, 50)", ())?;
    transaction.commit()?;
    Ok(db)
}

fn keys(mut redis: redis::Connection, guard: &Guard) -> Result<(), Box<dyn Error>> {
    let config = Fenced::new("config:7")?;
    config.raise(guard.write_token()).run(&mut redis)?;
    let before: Option<String> = config.get(guard.fencing_token()).run(&mut redis)?;
    config.set(guard.fencing_token(), "new").run(&mut redis)?;
    assert_eq!(before, None);
    Ok(())
}

fn over_http<S>(service: S, guard: &Guard) -> Result<(), Box<dyn Error>> {
    let mut request = http::Request::get("/invoice/42").body(String::new())?;
    raise(request.headers_mut(), guard.write_token());
    let request =
        http::Request::put("/invoice/42").header(FENCING_TOKEN, guard.fencing_token().get()).body("paid".to_owned())?;
    let service = FencingLayer::new(Arc::new(Gate::new())).layer(service);
    drop((request, service));
    Ok(())
}

fn in_memory(guard: &Guard, permits: &PermitGuard) -> Result<(), Box<dyn Error>> {
    let value = Cell::new("");
    let write = |text| value.set(text);
    let gate = Gate::new();
    gate.raise("invoice:42", guard.write_token())?;
    gate.write("invoice:42", guard.fencing_token(), || write("paid"))?;
    for (slot, token) in permits.write_tokens() {
        gate.raise(&format!("gpu/{slot}"), token)?;
    }
    assert_eq!(value.get(), "paid");
    Ok(())
}

#[test]
fn the_examples_of_fencing_run() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("memory:")?;
    let (guard, permits) = (locks.mutex("invoice:42").acquire()?, locks.semaphore("gpu", 4).acquire_many(2)?);
    let db = rusqlite::Connection::open_in_memory()?;
    db.execute_batch(
        "CREATE TABLE account (id INTEGER, balance INTEGER); INSERT INTO account VALUES (1, 0);
         CREATE TABLE payment (invoice INTEGER, amount INTEGER)",
    )?;
    transactions(rows(db, &guard)?, &guard)?;
    let server = RedisServer::start();
    keys(redis::Client::open(server.url())?.get_connection()?, &guard)?;
    over_http((), &guard)?;
    in_memory(&guard, &permits)
}
