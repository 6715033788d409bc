//! Whether two ways lead to the same database. No I/O.

use lock_core::Operation;

use crate::RedisConfig;
use crate::failure::Failure;
use crate::requests::simple::Simple;
use crate::target::Target;
use crate::wire::{Call, Line, Question, Retry, read};

/// How long a key lives if it is not found, in milliseconds.
const LIFE: u64 = 10_000;

/// The server of a pool. Refuses what does not work over connections that nobody verifies.
pub(crate) fn target(config: &RedisConfig) -> Result<Target, Failure> {
    if config.max_ttl().is_none() {
        return Target::of(config);
    }
    let told = "the connections of a pool are not verified, so failover=dwell and max_ttl are not possible with one";
    Err(Failure::unsupported(told).remedy("connect by URL without the pool, or remove these options from the URL"))
}

/// A key that nobody else uses.
pub(crate) fn key() -> Result<String, Failure> {
    Ok(format!("leasehold:probe:{}", Failure::random()?))
}

/// One way writes the key.
pub(crate) fn leave(key: &str) -> impl Question<Answer = ()> + use<> {
    let mut set = redis::cmd("SET");
    set.arg(key).arg(1).arg("PX").arg(LIFE);
    Simple { retry: Retry::Never, ..Simple::new(Operation::Connect, Call::plain(set), |_line, reply| read(reply)) }
}

/// The other way deletes it: it has to be there.
pub(crate) fn take(key: &str) -> impl Question<Answer = ()> + use<> {
    let mut delete = redis::cmd("DEL");
    delete.arg(key);
    let taken = |Line { wire, .. }: Line<'_>, reply| match read::<i64>(reply)? {
        1 => Ok(()),
        _ => Err(Failure::config(format!("the pool leads to a different server or database from {}", wire.server))
            .remedy("give the URL of the pool's own server, with the number of its database")),
    };
    Simple { retry: Retry::Never, ..Simple::new(Operation::Connect, Call::plain(delete), taken) }
}
