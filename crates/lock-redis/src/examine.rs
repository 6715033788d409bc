//! What a server says about itself, for operators.

mod checks;
mod found;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lock_core::examine::Check;
use lock_core::{BackendError, Operation};
use redis::{Cmd, ConnectionAddr, FromRedisValue};

use self::checks::checks;
use self::found::{Examination, Exposure, Persistence};
use crate::RedisConfig;
use crate::blocking::{Redis, Source};
use crate::config::Eviction;
use crate::connect::CONNECT_WITHIN;
use crate::failure::Failure;
use crate::keys::{Key, Scope};
use crate::requests::simple::Simple;
use crate::server::greeting::field;
use crate::servers::Server;
use crate::span::Span;
use crate::wire::{Line, read, remaining};

/// How many round trips are timed. Chosen: enough that one slow one stands out.
const ROUND_TRIPS: usize = 10;

/// Asks the server of a configuration about itself, or each primary of a cluster.
pub(crate) fn examine(config: &RedisConfig) -> Result<Vec<Check>, BackendError> {
    let failed = |failure: Failure| failure.into_error(Operation::Inspect);
    let mut found = vec![Check::ok("reach", format!("connected to {}", config.shown_url()))];
    for (server, _) in Redis::connect(config)?.each()? {
        found.extend(checks(&examined(&server, config).map_err(failed)?, config));
    }
    Ok(found)
}

fn examined(server: &Server<Source>, config: &RedisConfig) -> Result<Examination, Failure> {
    let section = |name: &str| ask::<String>(server, redis::cmd("INFO").arg(name));
    let info = [section("server")?, section("replication")?, section("memory")?, section("persistence")?].concat();
    let info = Info(&info);
    let save: Option<Vec<String>> = ask(server, redis::cmd("CONFIG").arg("GET").arg("save")).ok();
    let dwell = if config.is_cluster() { None } else { remaining(dwell_of(server)?) };
    let mut round_trips = (0..ROUND_TRIPS).map(|_| timed(server)).collect::<Result<Vec<_>, _>>()?;
    round_trips.sort_unstable();
    Ok(Examination {
        server: address(server)?,
        version: info.version(),
        replicas: info.number("connected_slaves:").and_then(|count| u32::try_from(count).ok()).unwrap_or_default(),
        awaited_replicas: config.copies().map(|copies| copies.replicas().into()).filter(|replicas| *replicas > 0),
        eviction_policy: info.field("maxmemory_policy:").unwrap_or_default().to_owned(),
        eviction_is_allowed: config.eviction() == Eviction::Allowed,
        memory_limit: info.number("maxmemory:").filter(|limit| *limit > 0),
        persistence: info.persistence(save),
        dwell,
        clock_ahead_ms: clock_ahead(server)?,
        round_trips,
        exposure: exposure(config.server().addr()),
        uses_password: config.server().redis_settings().password().is_some(),
    })
}

fn dwell_of(server: &Server<Source>) -> Result<i64, Failure> {
    ask(server, redis::cmd("PTTL").arg(Key::Dwell(Scope::Database)))
}

/// How long the server takes to say what time it is.
fn timed(server: &Server<Source>) -> Result<Duration, Failure> {
    let began = Instant::now();
    ask::<Vec<u64>>(server, &redis::cmd("TIME"))?;
    Ok(began.elapsed())
}

fn clock_ahead(server: &Server<Source>) -> Result<i64, Failure> {
    let (began, at) = (Instant::now(), SystemTime::now());
    let time: Vec<i64> = ask(server, &redis::cmd("TIME"))?;
    let [seconds, micros] = time[..] else { return Err(Failure::strange_answer()) };
    let middle = at + began.elapsed() / 2;
    let here = middle.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let there = seconds.saturating_mul(1000).saturating_add(micros / 1000);
    Ok(there.saturating_sub(i64::try_from(here).unwrap_or(i64::MAX)))
}

fn exposure(addr: &ConnectionAddr) -> Exposure {
    match addr {
        ConnectionAddr::TcpTls { .. } => Exposure::Encrypted,
        ConnectionAddr::Unix(_) => Exposure::Local,
        ConnectionAddr::Tcp(host, _) => {
            let loops = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
            if loops || host == "localhost" { Exposure::Local } else { Exposure::Plain }
        }
        _ => Exposure::Plain,
    }
}

/// What `INFO` answers.
struct Info<'a>(&'a str);

impl<'a> Info<'a> {
    fn field(&self, name: &str) -> Option<&'a str> {
        field(self.0, name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    fn version(&self) -> String {
        match (self.field("valkey_version:"), self.field("redis_version:")) {
            (Some(version), _) => format!("valkey {version}"),
            (None, version) => format!("redis {}", version.unwrap_or("of an unknown version")),
        }
    }

    /// `save` is the server's setting, if this client may ask for it.
    fn persistence(&self, save: Option<Vec<String>>) -> Persistence {
        let snapshots = save.and_then(|save| save.get(1).map(|rules| !rules.is_empty()));
        match (self.field("aof_enabled:"), snapshots) {
            (Some("1"), _) => Persistence::AppendOnly,
            (_, Some(true)) => Persistence::Snapshots,
            (_, Some(false)) => Persistence::Nothing,
            (_, None) => Persistence::Unsaid,
        }
    }
}

fn ask<T: FromRedisValue + Send>(server: &Server<Source>, command: &Cmd) -> Result<T, Failure> {
    answer(server, Simple::repeatable(Operation::Inspect, command.clone(), |_line, reply| read(reply)))
}

/// The address that messages show.
fn address(server: &Server<Source>) -> Result<String, Failure> {
    let answered = |line: Line<'_>, _reply| Ok(line.wire.server.clone());
    answer(server, Simple::repeatable(Operation::Inspect, redis::cmd("TIME"), answered))
}

fn answer<T: Send>(server: &Server<Source>, question: Simple<T>) -> Result<T, Failure> {
    server.answer(&question, Span::from_now(CONNECT_WITHIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_read() {
        let info = Info("redis_version:7.2.4\r\naof_enabled:0\r\nmaxmemory:1000\r\n");
        assert_eq!((info.version().as_str(), info.number("maxmemory:")), ("redis 7.2.4", Some(1000)));
        assert_eq!(Info("redis_version:7.2.4\r\nvalkey_version:8.1.0\r\n").version(), "valkey 8.1.0");
        let save = |rules: &str| Some(vec!["save".to_owned(), rules.to_owned()]);
        for (aof, save, expected) in [
            ("1", None, Persistence::AppendOnly),
            ("0", save("3600 1"), Persistence::Snapshots),
            ("0", save(""), Persistence::Nothing),
            ("0", None, Persistence::Unsaid),
        ] {
            assert_eq!(Info(&format!("aof_enabled:{aof}\r\n")).persistence(save), expected);
        }
    }

    #[test]
    fn only_this_machine_and_tls_are_out_of_reach() {
        let of = |url: &str| exposure(RedisConfig::from_url(url).unwrap().server().addr());
        for (url, expected) in [
            ("redis://127.0.0.1", Exposure::Local),
            ("redis://[::1]:7", Exposure::Local),
            ("redis://localhost", Exposure::Local),
            ("unix:///run/redis.sock", Exposure::Local),
            ("redis://db1", Exposure::Plain),
        ] {
            assert_eq!(of(url), expected, "{url}");
        }
    }
}
