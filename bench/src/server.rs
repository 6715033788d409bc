//! The measured server, and what it reports about itself.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::time::Duration;

use anyhow::{Context, Result};
use redis::{Connection, FromRedisValue, Value, cmd};
use test_support::bounds::wait_for;
use test_support::{RedisOptions, RedisServer};

use crate::kind::Fault;

/// Commands that clients send and scripts never do. Those that scripts run are counted apart from them.
const SENT_BY_CLIENTS: [&str; 9] =
    ["evalsha", "eval", "fcall", "script|load", "subscribe", "ssubscribe", "unsubscribe", "sunsubscribe", "ping"];
/// How many commands the slow log keeps; more than are sent while leases are held.
const SLOWLOG_LENGTH: u32 = 500_000;

/// A redis-server of our own.
pub(crate) struct Server {
    server: RedisServer,
    connection: Connection,
    /// Only there to be written to.
    _replicas: Vec<RedisServer>,
}

/// What the server has done since it started.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// Processor time.
    pub(crate) processor: Duration,
    /// Bytes in use.
    pub(crate) memory: u64,
    /// What 999 of 1,000 scripts took at most since everything was forgotten, in microseconds; where the server says it.
    pub(crate) script_tail: Option<f64>,
    /// How often each command ran, in scripts or not.
    calls: BTreeMap<String, u64>,
}

/// A script that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptRun {
    /// For how long it blocked all other clients.
    pub(crate) took: Duration,
    /// How many keys it was given.
    pub(crate) keys: u64,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(0)
    }

    /// Starts it with so many replicas.
    pub(crate) fn start_with(replicas: usize) -> Self {
        let length = SLOWLOG_LENGTH.to_string();
        let options = RedisOptions::default().arguments(&[
            "--slowlog-max-len",
            &length,
            "--slowlog-log-slower-than",
            "-1",
            "--maxclients",
            "20000",
        ]);
        let server = RedisServer::start_with(options);
        let connection = server.connection();
        let port = server.port().to_string();
        let options = || RedisOptions::default().arguments(&["--replicaof", "127.0.0.1", &port]);
        let replicas: Vec<_> = (0..replicas).map(|_| RedisServer::start_with(options())).collect();
        let follows = |replica: &RedisServer| {
            let info: String = replica.command(&["INFO", "replication"]);
            info.contains("master_link_status:up").then_some(())
        };
        replicas.iter().for_each(|replica| wait_for("a replica follows", || follows(replica)));
        Self { server, connection, _replicas: replicas }
    }

    /// Breaks it.
    pub(crate) fn break_down(&mut self, fault: Fault) {
        match fault {
            Fault::Killed => self.server.kill(),
            Fault::Hung => self.server.stop(),
        }
    }

    /// Restarts it without data.
    pub(crate) fn restart(&mut self) {
        self.server.restart_empty();
        self.connection = self.server.connection();
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Forgets all data, and what commands took.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.ask::<()>(&["FLUSHALL"])?;
        self.ask(&["CONFIG", "RESETSTAT"])
    }

    pub(crate) fn version(&mut self) -> Result<String> {
        let info: String = self.ask(&["INFO", "server"])?;
        let name = |line: &str| line.strip_prefix("redis_version:").map(|version| version.trim().to_owned());
        info.lines().find_map(name).context("the server does not say its version")
    }

    pub(crate) fn stats(&mut self) -> Result<Stats> {
        Ok(Stats::read(&self.ask::<String>(&["INFO", "everything"])?))
    }

    /// Until a key expires.
    pub(crate) fn remaining(&mut self, key: &str) -> Result<Option<Duration>> {
        let pttl: i64 = self.ask(&["PTTL", key])?;
        Ok(u64::try_from(pttl).ok().map(Duration::from_millis))
    }

    /// Begins to write down every command and how long it took.
    pub(crate) fn log_commands(&mut self) -> Result<()> {
        self.ask::<()>(&["SLOWLOG", "RESET"])?;
        self.ask(&["CONFIG", "SET", "slowlog-log-slower-than", "0"])
    }

    /// Ends that, and returns the scripts that ran.
    pub(crate) fn logged_scripts(&mut self) -> Result<Vec<ScriptRun>> {
        self.ask::<()>(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"])?;
        let length = SLOWLOG_LENGTH.to_string();
        let entries: Vec<Vec<Value>> = self.ask(&["SLOWLOG", "GET", &length])?;
        self.ask::<()>(&["SLOWLOG", "RESET"])?;
        Ok(entries.into_iter().filter_map(script_run).collect())
    }

    fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> Result<T> {
        let mut command = cmd(words[0]);
        for word in &words[1..] {
            command.arg(word);
        }
        command.query(&mut self.connection).with_context(|| words.join(" "))
    }
}

/// An entry of the slow log: its number, when, for how many microseconds, and the words of the command.
fn script_run(entry: Vec<Value>) -> Option<ScriptRun> {
    let mut parts = entry.into_iter().skip(2);
    let took: u64 = redis::from_redis_value(parts.next()?).ok()?;
    // Owners may be any bytes.
    let words: Vec<Vec<u8>> = redis::from_redis_value(parts.next()?).ok()?;
    let [command, _, keys, ..] = words.as_slice() else { return None };
    let keys = std::str::from_utf8(keys).ok()?.parse().ok()?;
    command.eq_ignore_ascii_case(b"EVALSHA").then_some(ScriptRun { took: Duration::from_micros(took), keys })
}

impl Sum for Stats {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, stats| {
            sum.processor += stats.processor;
            sum.memory += stats.memory;
            sum.script_tail = [sum.script_tail, stats.script_tail].into_iter().flatten().reduce(f64::max);
            for (name, calls) in stats.calls {
                *sum.calls.entry(name).or_default() += calls;
            }
            sum
        })
    }
}

impl Stats {
    fn read(info: &str) -> Self {
        let mut stats = Self::default();
        for (key, value) in info.lines().filter_map(|line| line.trim().split_once(':')) {
            match key {
                "used_cpu_user" | "used_cpu_sys" => {
                    stats.processor += Duration::from_secs_f64(value.parse().unwrap_or(0.0));
                }
                "latency_percentiles_usec_evalsha" => stats.script_tail = percentile(value),
                "used_memory" => stats.memory = value.parse().unwrap_or(0),
                _ => {
                    if let Some(name) = key.strip_prefix("cmdstat_") {
                        stats.calls.insert(name.to_owned(), calls(value));
                    }
                }
            }
        }
        stats
    }

    /// How many commands clients sent since an earlier moment: those that no script runs, and `besides`.
    pub(crate) fn sent_since(&self, earlier: &Self, besides: &[&str]) -> u64 {
        SENT_BY_CLIENTS.iter().chain(besides).map(|name| self.calls_since(earlier, name)).sum()
    }

    /// How often a command ran since an earlier moment, in scripts or not.
    fn calls_since(&self, earlier: &Self, name: &str) -> u64 {
        let calls = |stats: &Self| stats.calls.get(name).copied().unwrap_or(0);
        calls(self).saturating_sub(calls(earlier))
    }
}

/// `p50=1.003,p99=2.007,p99.9=5.023`
fn percentile(value: &str) -> Option<f64> {
    value.rsplit_once("p99.9=")?.1.parse().ok()
}

/// `calls=3,usec=12,...`
fn calls(value: &str) -> u64 {
    value.strip_prefix("calls=").and_then(|rest| rest.split(',').next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_sent_is_told_from_what_scripts_ran() {
        let earlier = Stats::read("cmdstat_set:calls=5,usec=1\r\ncmdstat_evalsha:calls=2,usec=9\r\n");
        let later = Stats::read(
            "used_cpu_sys:0.25\r\nused_cpu_user:0.5\r\nused_memory:77\r\ncmdstat_set:calls=15,usec=1\r\n\
             cmdstat_evalsha:calls=12,usec=9\r\ncmdstat_get:calls=9,usec=9\r\ncmdstat_script|load:calls=1,usec=3\r\n\
             latency_percentiles_usec_evalsha:p50=1.003,p99=2.007,p99.9=5.023\r\n",
        );
        assert_eq!((later.processor, later.memory), (Duration::from_millis(750), 77));
        assert_eq!((earlier.script_tail, later.script_tail), (None, Some(5.023)));
        assert_eq!(later.sent_since(&earlier, &[]), 11);
        assert_eq!(later.sent_since(&earlier, &["set"]), 21);
    }
}
