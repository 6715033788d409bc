//! Answers of servers that may be dead or suspended.

use std::time::Duration;

use crate::{RedisServer, must};

/// What a server says about its replication; nothing if it does not answer.
pub(crate) fn info(server: &RedisServer) -> String {
    ask(server, &["INFO", "replication"]).unwrap_or_default()
}

/// Runs a command at a server; `None` if it does not answer within a second.
pub(crate) fn ask<T: redis::FromRedisValue>(server: &RedisServer, words: &[&str]) -> Option<T> {
    let client = must("read the server's own URL", redis::Client::open(server.url()));
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(1)).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    redis::cmd(words[0]).arg(&words[1..]).query(&mut connection).ok()
}
