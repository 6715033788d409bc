//! Two holders that read, change and write, and are both paused in between. The later one reads before the earlier one writes.

use std::sync::{Arc, Mutex};

use ::http::{Method, Request};
use ::redis::Commands;
use lock_core::{FencingToken, WriteToken};
use lock_fence::Gate;
use lock_fence::http::{FENCING_RAISE, FencingLayer, raise};
use lock_fence::redis::Fenced;
use lock_fence::sql::{FenceColumn, FenceTable};
use rusqlite::Connection;
use test_support::RedisServer;
use tower_layer::Layer;

use crate::http::{Store, put, send};
use crate::{token, write_token};

/// A balance behind a fence.
trait Account {
    /// Whether the fence was raised.
    fn raise(&mut self, token: WriteToken) -> bool;
    fn read(&mut self) -> i64;
    /// Whether the balance was written.
    fn write(&mut self, token: FencingToken, balance: i64) -> bool;
}

/// The answers to the writes of the earlier and the later holder, and the balance in the end. Both read 100; the earlier
/// one adds 50, the later one 20.
fn play(account: &mut dyn Account, before_the_read: fn(&mut dyn Account, WriteToken) -> bool) -> ([bool; 2], i64) {
    assert!(account.write(token(6), 100));
    assert!(before_the_read(account, write_token(7)));
    let earlier = account.read();
    assert!(before_the_read(account, write_token(8)));
    let later = account.read();
    let written = [account.write(token(7), earlier + 50), account.write(token(8), later + 20)];
    (written, account.read())
}

fn accounts() -> [(&'static str, Box<dyn Account>); 5] {
    [
        ("memory", Box::new(Memory::default())),
        ("column", Box::new(Column::new())),
        ("table", Box::new(Table::new())),
        ("redis", Box::new(Redis::new())),
        ("http", Box::new(Http::default())),
    ]
}

#[test]
fn with_tokens_alone_both_are_told_that_they_have_written_and_an_update_is_lost() {
    for (name, mut account) in accounts() {
        assert_eq!(play(&mut *account, |_, _| true), ([true, true], 120), "{name}");
    }
}

#[test]
fn with_the_fence_raised_before_the_read_the_earlier_one_is_refused() {
    for (name, mut account) in accounts() {
        assert_eq!(play(&mut *account, |account, token| account.raise(token)), ([false, true], 120), "{name}");
        assert!(!account.raise(write_token(7)), "{name}: a late holder raised the fence");
    }
}

#[derive(Default)]
struct Memory {
    gate: Gate,
    balance: Mutex<i64>,
}

impl Account for Memory {
    fn raise(&mut self, token: WriteToken) -> bool {
        self.gate.raise("x", token).is_ok()
    }

    fn read(&mut self) -> i64 {
        *self.balance.lock().unwrap()
    }

    fn write(&mut self, token: FencingToken, balance: i64) -> bool {
        self.gate.write("x", token, || *self.balance.lock().unwrap() = balance).is_ok()
    }
}

fn balance(db: &Connection) -> i64 {
    db.query_row("SELECT balance FROM account", (), |row| row.get(0)).unwrap()
}

struct Column(Connection, FenceColumn);

impl Column {
    fn new() -> Self {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE account (id INTEGER, balance INTEGER, fence BIGINT NOT NULL DEFAULT 0);
             INSERT INTO account (id) VALUES (1)",
        )
        .unwrap();
        Self(db, FenceColumn::new("account", "fence").unwrap())
    }
}

impl Account for Column {
    fn raise(&mut self, token: WriteToken) -> bool {
        self.1.raise(&self.0, token, &[("id", &1)]).is_ok()
    }

    fn read(&mut self) -> i64 {
        balance(&self.0)
    }

    fn write(&mut self, token: FencingToken, balance: i64) -> bool {
        self.1.update(&self.0, token, &[("balance", &balance)], &[("id", &1)]).is_ok()
    }
}

struct Table(Connection);

impl Table {
    fn new() -> Self {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (0)").unwrap();
        db.execute_batch(FenceTable::CREATE).unwrap();
        Self(db)
    }

    fn transact(&mut self, token: WriteToken, work: impl FnOnce(&Connection)) -> bool {
        let transaction = self.0.transaction().unwrap();
        let raised = FenceTable::raise(&transaction, "account/1", token).is_ok();
        if raised {
            work(&transaction);
            transaction.commit().unwrap();
        }
        raised
    }
}

impl Account for Table {
    fn raise(&mut self, token: WriteToken) -> bool {
        self.transact(token, |_| ())
    }

    fn read(&mut self) -> i64 {
        balance(&self.0)
    }

    fn write(&mut self, token: FencingToken, balance: i64) -> bool {
        self.transact(WriteToken::of_writer(token), |db| {
            db.execute("UPDATE account SET balance = ?1", [balance]).unwrap();
        })
    }
}

struct Redis {
    _server: RedisServer,
    connection: ::redis::Connection,
    key: Fenced,
}

impl Redis {
    fn new() -> Self {
        let server = RedisServer::start();
        let connection = ::redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        Self { _server: server, connection, key: Fenced::new("balance").unwrap() }
    }
}

impl Account for Redis {
    fn raise(&mut self, token: WriteToken) -> bool {
        self.key.raise(token).run(&mut self.connection).is_ok()
    }

    fn read(&mut self) -> i64 {
        self.connection.get("balance").unwrap()
    }

    fn write(&mut self, token: FencingToken, balance: i64) -> bool {
        self.key.set(token, balance).run(&mut self.connection).is_ok()
    }
}

#[derive(Default)]
struct Http {
    gate: Arc<Gate>,
    store: Store,
}

impl Account for Http {
    fn raise(&mut self, token: WriteToken) -> bool {
        let mut request = Request::builder().method(Method::GET).uri("/x").body(String::new()).unwrap();
        raise(request.headers_mut(), token);
        let answer = send(FencingLayer::new(Arc::clone(&self.gate)).layer(self.store.clone()), request);
        let raised = answer.headers().get(FENCING_RAISE).is_some_and(|raised| *raised == token.to_string());
        assert_eq!(raised, answer.status().is_success());
        raised
    }

    fn read(&mut self) -> i64 {
        self.store.value().parse().unwrap()
    }

    fn write(&mut self, token: FencingToken, balance: i64) -> bool {
        let service = FencingLayer::new(Arc::clone(&self.gate)).layer(self.store.clone());
        put(service, Some(token), &balance.to_string()).status().is_success()
    }
}
