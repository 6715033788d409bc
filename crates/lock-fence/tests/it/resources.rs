//! A resource of each kind, and beside it one whose check and write are two steps.

use std::sync::{Arc, Mutex};

use ::redis::Commands;
use lock_core::{FencingToken, WriteToken};
use lock_fence::Gate;
use lock_fence::http::FencingLayer;
use lock_fence::redis::Fenced;
use lock_fence::sql::{FenceColumn, FenceTable};
use rusqlite::Connection;
use tempfile::TempDir;
use test_support::{RedisServer, temp_dir};
use tower_layer::Layer;

use crate::http::{Store, put};

/// What two holders write to. The value is the token of the last write, as text.
pub(crate) trait Resource: Sync {
    /// Writes, unless the token is too low. A holder may be paused, by `pause`, wherever its check allows it.
    fn write(&self, token: FencingToken, pause: &dyn Fn()) -> bool;

    /// What was written last.
    fn value(&self) -> String;
}

type Named = (&'static str, Box<dyn Resource>);

pub(crate) fn checked() -> Vec<Named> {
    vec![
        ("memory", Box::new(Memory::default())),
        ("column", Box::new(Sql::new(Sql::by_column))),
        ("table", Box::new(Sql::new(Sql::by_table))),
        ("redis", Box::new(Redis::new(Redis::by_script))),
        ("http", Box::new(Http::new(Http::by_layer))),
    ]
}

pub(crate) fn broken() -> Vec<Named> {
    vec![
        ("memory", Box::new(BrokenMemory::default())),
        ("column", Box::new(Sql::new(Sql::by_two_statements))),
        ("table", Box::new(Sql::new(Sql::by_two_transactions))),
        ("redis", Box::new(Redis::new(Redis::by_two_commands))),
        ("http", Box::new(Http::new(Http::by_an_early_check))),
    ]
}

#[derive(Default)]
struct Memory {
    gate: Gate,
    value: Mutex<String>,
}

impl Resource for Memory {
    fn write(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        pause();
        self.gate.write("x", token, || *self.value.lock().unwrap() = token.to_string()).is_ok()
    }

    fn value(&self) -> String {
        self.value.lock().unwrap().clone()
    }
}

#[derive(Default)]
struct BrokenMemory(Memory);

impl Resource for BrokenMemory {
    fn write(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        let passed = self.0.gate.check("x", token).is_ok();
        pause();
        if passed {
            *self.0.value.lock().unwrap() = token.to_string();
        }
        passed
    }

    fn value(&self) -> String {
        self.0.value()
    }
}

/// A way to write, which the two of a kind differ in.
type Way<R> = fn(&R, FencingToken, &dyn Fn()) -> bool;

struct Sql {
    folder: TempDir,
    way: Way<Self>,
}

impl Sql {
    fn new(way: Way<Self>) -> Self {
        let sql = Self { folder: temp_dir(), way };
        sql.connect()
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE account (id INTEGER PRIMARY KEY, balance TEXT, fence BIGINT NOT NULL DEFAULT 0);
                 INSERT INTO account (id) VALUES (1)",
            )
            .unwrap();
        sql.connect().execute_batch(FenceTable::CREATE).unwrap();
        sql
    }

    fn connect(&self) -> Connection {
        let db = Connection::open(self.folder.path().join("data.db")).unwrap();
        db.execute_batch("PRAGMA synchronous = OFF").unwrap();
        db
    }

    fn by_column(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        pause();
        let account = FenceColumn::new("account", "fence").unwrap();
        account.update(&self.connect(), token, &[("balance", &token.to_string())], &[("id", &1)]).is_ok()
    }

    fn by_two_statements(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        let db = self.connect();
        let fence: i64 = db.query_row("SELECT fence FROM account", (), |row| row.get(0)).unwrap();
        pause();
        let passed = fence <= i64::from(token);
        if passed {
            db.execute("UPDATE account SET balance = ?1, fence = ?2", (token.to_string(), i64::from(token))).unwrap();
        }
        passed
    }

    fn by_table(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        pause();
        let mut db = self.connect();
        let transaction = db.transaction().unwrap();
        if FenceTable::raise(&transaction, "account/1", WriteToken::of_writer(token)).is_err() {
            return false;
        }
        transaction.execute("UPDATE account SET balance = ?1", [token.to_string()]).unwrap();
        transaction.commit().unwrap();
        true
    }

    fn by_two_transactions(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        let mut db = self.connect();
        let transaction = db.transaction().unwrap();
        let passed = FenceTable::raise(&transaction, "account/1", WriteToken::of_writer(token)).is_ok();
        transaction.commit().unwrap();
        pause();
        if passed {
            db.execute("UPDATE account SET balance = ?1", [token.to_string()]).unwrap();
        }
        passed
    }
}

impl Resource for Sql {
    fn write(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        (self.way)(self, token, pause)
    }

    fn value(&self) -> String {
        self.connect().query_row("SELECT balance FROM account", (), |row| row.get(0)).unwrap()
    }
}

struct Redis {
    server: RedisServer,
    way: Way<Self>,
}

impl Redis {
    fn new(way: Way<Self>) -> Self {
        Self { server: RedisServer::start(), way }
    }

    fn connect(&self) -> ::redis::Connection {
        ::redis::Client::open(self.server.url()).unwrap().get_connection().unwrap()
    }

    fn by_script(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        pause();
        Fenced::new("x").unwrap().set(token, token.get()).run(&mut self.connect()).is_ok()
    }

    fn by_two_commands(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        let mut connection = self.connect();
        let fence: Option<u64> = connection.get("fence").unwrap();
        pause();
        let passed = fence.unwrap_or(0) <= token.get();
        if passed {
            let _: () = connection.mset(&[("fence", token.get()), ("x", token.get())]).unwrap();
        }
        passed
    }
}

impl Resource for Redis {
    fn write(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        (self.way)(self, token, pause)
    }

    fn value(&self) -> String {
        self.connect().get("x").unwrap()
    }
}

struct Http {
    gate: Arc<Gate>,
    store: Store,
    way: Way<Self>,
}

impl Http {
    fn new(way: Way<Self>) -> Self {
        Self { gate: Arc::default(), store: Store::default(), way }
    }

    fn by_layer(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        pause();
        let service = FencingLayer::new(Arc::clone(&self.gate)).layer(self.store.clone());
        put(service, Some(token), &token.to_string()).status().is_success()
    }

    fn by_an_early_check(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        let passed = self.gate.check("/x", token).is_ok();
        pause();
        passed && put(self.store.clone(), Some(token), &token.to_string()).status().is_success()
    }
}

impl Resource for Http {
    fn write(&self, token: FencingToken, pause: &dyn Fn()) -> bool {
        (self.way)(self, token, pause)
    }

    fn value(&self) -> String {
        self.store.value()
    }
}
