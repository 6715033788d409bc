//! Numbers under keys in a Redis, 6.2 or later.

use std::time::Duration;

use redis::{Client, Cmd, Connection, FromRedisValue, RedisError, Script, cmd};
use url::Url;

use super::{Fence, Raw};
use crate::shared::failure::{Exit, Failure};
use crate::shared::millis;

/// How long a request may take.
const WITHIN: Duration = Duration::from_secs(5);

/// # Source
/// Redis manual, "Distributed locks with Redis".
const COMPARE_AND_DELETE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
";

/// Numbers below 2^53 are exact in Lua.
const RAISE: &str = "
if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
";

const SET_FENCED: &str = "
if tonumber(redis.call('GET', KEYS[2]) or '0') > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[2])
return 1
";

/// A connection to the server.
pub(crate) struct Server(Connection);

impl Server {
    /// Connects to the server of a URL that `leasehold` itself understands.
    pub(crate) fn connect(url: &str) -> Result<Self, Failure> {
        let connection = Client::open(plain(url)?)?.get_connection_with_timeout(WITHIN)?;
        connection.set_read_timeout(Some(WITHIN))?;
        connection.set_write_timeout(Some(WITHIN))?;
        Ok(Self(connection))
    }

    fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Failure> {
        Ok(command.query(&mut self.0)?)
    }
}

/// The URL without the options that only `leasehold` understands.
fn plain(url: &str) -> Result<Url, Failure> {
    let given = Url::parse(url).map_err(|error| Failure::new(Exit::Config, format!("this is not a URL: {error}")))?;
    let mut plain = given.clone();
    plain.set_query(None);
    let kept = given.query_pairs().filter(|(key, _)| matches!(&**key, "db" | "user" | "pass"));
    for (key, value) in kept {
        plain.query_pairs_mut().append_pair(&key, &value);
    }
    Ok(plain)
}

impl Raw for Server {
    fn get(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        self.ask(cmd("GET").arg(key))
    }

    fn set(&mut self, key: &str, value: u64) -> Result<(), Failure> {
        self.ask(cmd("SET").arg(key).arg(value))
    }

    fn set_if_absent(&mut self, key: &str, value: u64, expiry: Option<Duration>) -> Result<bool, Failure> {
        let mut set = cmd("SET");
        set.arg(key).arg(value).arg("NX");
        if let Some(expiry) = expiry {
            set.arg("PX").arg(millis(expiry));
        }
        self.ask(&set)
    }

    fn renew(&mut self, key: &str, expiry: Duration) -> Result<Option<u64>, Failure> {
        self.ask(cmd("GETEX").arg(key).arg("PX").arg(millis(expiry)))
    }

    fn delete(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        self.ask(cmd("GETDEL").arg(key))
    }

    fn compare_and_delete(&mut self, key: &str, value: u64) -> Result<bool, Failure> {
        Ok(Script::new(COMPARE_AND_DELETE).key(key).arg(value).invoke(&mut self.0)?)
    }

    fn raise(&mut self, fence: Fence<'_>) -> Result<bool, Failure> {
        Ok(Script::new(RAISE).key(fence.key).arg(fence.token.get()).invoke(&mut self.0)?)
    }

    fn set_fenced(&mut self, key: &str, value: u64, fence: Fence<'_>) -> Result<bool, Failure> {
        let script = Script::new(SET_FENCED);
        Ok(script.key(key).key(fence.key).arg(value).arg(fence.token.get()).invoke(&mut self.0)?)
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let message = format!(
            "Redis failed: {error}; check that it runs, is version 6.2 or later, and allows this user to write"
        );
        Self::new(Exit::Unavailable, message)
    }
}
