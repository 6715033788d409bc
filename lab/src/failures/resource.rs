//! The resource of a holder: a key in Redis with a check of tokens, or rows in the PostgreSQL database that has the lock.

use leasehold::blocking::Guard;
use leasehold::fence::redis::{Fenced, FencedError};
use redis::Connection;

use super::holder::LOCK;
use super::orders::{Answer, Order, Setup};
use super::{by_hand, sql};
use crate::shared::failure::Failure;

pub(super) enum Resource {
    Key(Key),
    Rows(postgres::Client),
}

/// A key with its fence.
pub(super) struct Key {
    redis: Connection,
    name: String,
    fenced: Fenced,
}

impl Resource {
    pub(super) fn connect(setup: &Setup) -> Result<Self, Failure> {
        if setup.resource.starts_with("postgres:") {
            return sql::connect(&setup.resource).map(Self::Rows);
        }
        let (redis, fenced) = (by_hand::connect(&setup.resource)?, Fenced::new(&setup.key)?);
        Ok(Self::Key(Key { redis, name: setup.key.clone(), fenced }))
    }

    /// Reads, without a check.
    pub(super) fn read(&mut self) -> Answer {
        let Self::Key(key) = self else { return other_resource() };
        let value = redis::cmd("GET").arg(&key.name).query(&mut key.redis);
        value.map_or_else(|error| Answer::Failed(error.to_string()), Answer::Value)
    }

    /// Works under a lock.
    pub(super) fn work(&mut self, order: &Order, guard: &Guard) -> Answer {
        match (self, order) {
            (Self::Key(key), Order::Raise) => checked(key.fenced.raise(guard.write_token()).run(&mut key.redis)),
            (Self::Key(key), Order::Write(value)) => {
                checked(key.fenced.set(guard.fencing_token(), value).run(&mut key.redis))
            }
            (Self::Rows(client), Order::Begin) => begun(client, guard),
            (Self::Rows(client), Order::Ask(statements)) => replied(sql::ask(client, statements)),
            _ => other_resource(),
        }
    }
}

/// The statements that `leasehold::postgres::Fences` sends. Here, a transaction spans several orders.
fn begun(client: &mut postgres::Client, guard: &Guard) -> Answer {
    let statements = format!("BEGIN; SELECT leasehold.fence('{LOCK}', {})", guard.fencing_token());
    sql::ask(client, &statements).map_or_else(|error| Answer::Failed(sql::reason(&error)), |_| Answer::Done)
}

fn replied(reply: Result<String, postgres::Error>) -> Answer {
    reply.map_or_else(|error| Answer::Failed(sql::reason(&error)), |value| Answer::Value(Some(value)))
}

fn checked(answer: Result<(), FencedError>) -> Answer {
    match answer {
        Ok(()) => Answer::Done,
        Err(FencedError::Refused(refused)) => Answer::Refused { token: refused.token, highest: refused.highest },
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn other_resource() -> Answer {
    Answer::Failed("the resource is of another kind".to_owned())
}
