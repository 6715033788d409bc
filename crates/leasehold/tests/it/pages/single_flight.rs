//! The code of docs/book/src/kinds/single-flight.md.
#![allow(
    clippy::unwrap_used,
    clippy::unused_async,
    reason = "what stands for a server never fails and answers at once"
)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Mutex;
use std::time::Duration;

use leasehold::kit::{Entry, Found};
use leasehold::{Cache, Client, Kit, blocking};
use serde_json::Value as User;

type Failed = Box<dyn Error + Send + Sync>;

/// A store of texts.
#[derive(Default)]
struct Kv(Mutex<HashMap<String, (String, Duration)>>);

impl Kv {
    async fn get(&self, key: &str) -> Result<Option<(String, Duration)>, Failed> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }

    async fn set(&self, key: &str, value: String, ttl: Duration) -> Result<(), Failed> {
        self.0.lock().unwrap().insert(key.to_owned(), (value, ttl));
        Ok(())
    }
}

struct Users(Kv); // your client of Redis, memcached or a table

impl Cache for Users {
    type Value = Option<User>; // a user may not exist
    type Error = Box<dyn Error + Send + Sync>; // of the cache, the database and the lock

    async fn get(&self, key: &str) -> Result<Option<Found<Option<User>>>, Self::Error> {
        let Some((json, left)) = self.0.get(key).await? else { return Ok(None) }; // in Redis, GET and PTTL
        Ok(Some(Found::expiring_in(serde_json::from_str(&json)?, left)))
    }

    async fn put(&self, entry: Entry<'_, Option<User>>) -> Result<(), Self::Error> {
        self.0.set(entry.key, serde_json::to_string(entry.value)?, entry.ttl).await // in Redis, SET with PX
    }

    fn is_absent(&self, user: &Option<User>) -> bool {
        user.is_none()
    }
}

struct Db;

impl Db {
    async fn user(&self, id: u32) -> Result<Option<User>, Failed> {
        Ok((id == 42).then(|| User::from("Ada")))
    }
}

async fn a_user(locks: &Client, users: Users, db: Db) -> Result<(Option<User>, Users), Failed> {
    let flight = locks.single_flight("user:42").value_ttl(Duration::from_secs(600)).absent_ttl(Duration::from_secs(5));
    let user = flight.get_or_compute(&users, async || db.user(42).await).await?;
    Ok((user, users))
}

/// A cache of one value.
#[derive(Default)]
struct One(Mutex<Option<u32>>);

impl blocking::Cache for One {
    type Value = u32;
    type Error = Failed;

    fn get(&self, _key: &str) -> Result<Option<Found<u32>>, Failed> {
        Ok(self.0.lock().unwrap().map(Found::new))
    }

    fn put(&self, entry: Entry<'_, u32>) -> Result<(), Failed> {
        *self.0.lock().unwrap() = Some(*entry.value);
        Ok(())
    }
}

#[allow(clippy::redundant_closure, reason = "it stands for a call with arguments")]
fn rates(locks: &blocking::Client, cache: One, fetch_rates: impl Fn() -> Result<u32, Failed>) -> Result<u32, Failed> {
    use blocking::Kit;
    let flight = locks.single_flight("rates").stale_for(Duration::from_secs(60)).wait(Duration::from_secs(5));
    let rates = flight.get_or_compute(&cache, || fetch_rates())?;
    Ok(rates)
}

#[tokio::test]
async fn the_examples_of_single_flight_run() -> Result<(), Failed> {
    let (locks, mut users) = (leasehold::connect("memory:").await?, Users(Kv::default()));
    for _ in 0..2 {
        let user;
        (user, users) = a_user(&locks, users, Db).await?;
        assert_eq!(user, Some(User::from("Ada")));
    }
    assert!(users.0.0.lock().unwrap()["user:42"].1 <= Duration::from_secs(600));
    assert_eq!(rates(&blocking::connect("memory:")?, One::default(), || Ok(7))?, 7);
    Ok(())
}
