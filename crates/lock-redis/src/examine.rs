//! What a server says about itself, for operators.

mod checks;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lock_core::examine::Check;
use lock_core::{BackendError, Operation};
use redis::{Cmd, FromRedisValue};

use self::checks::{Found, checks};
use crate::RedisConfig;
use crate::blocking::{Connections, Redis};
use crate::connect::CONNECT_WITHIN;
use crate::failure::Failure;
use crate::keys::{Key, Scope};
use crate::requests::simple::Simple;
use crate::servers::Server;
use crate::span::Span;
use crate::wire::{Retry, read, remaining};

/// How many round trips are timed. Chosen: enough that one slow one stands out.
const ROUND_TRIPS: usize = 10;

/// Asks the server of a configuration about itself, or each primary of a cluster.
pub(crate) fn examine(config: &RedisConfig) -> Result<Vec<Check>, BackendError> {
    let failed = |failure: Failure| failure.into_error(Operation::Inspect);
    let mut told = vec![Check::ok("reach", format!("connected to {}", config.shown_url()))];
    for (server, _) in Redis::connect(config)?.each()? {
        let checks = checks(&found(&server, config).map_err(failed)?).into_iter();
        let of_one = |check: Check| if config.is_cluster() { check.of(&server.wire.server) } else { check };
        told.extend(checks.map(of_one));
    }
    Ok(told)
}

fn found<'a>(server: &Server<Connections>, config: &'a RedisConfig) -> Result<Found<'a>, Failure> {
    let section = |name: &str| ask::<String>(server, redis::cmd("INFO").arg(name));
    let info = [section("server")?, section("replication")?, section("memory")?, section("persistence")?].concat();
    let save = ask(server, redis::cmd("CONFIG").arg("GET").arg("save")).ok();
    let dwell = if config.is_cluster() { None } else { remaining(dwell_of(server)?) };
    let mut round_trips = (0..ROUND_TRIPS).map(|_| timed(server)).collect::<Result<Vec<_>, _>>()?;
    round_trips.sort_unstable();
    Ok(Found { config, info, save, dwell, clock_ahead_ms: clock_ahead(server)?, round_trips })
}

fn dwell_of(server: &Server<Connections>) -> Result<i64, Failure> {
    ask(server, redis::cmd("PTTL").arg(Key::Dwell(Scope::Database)))
}

/// How long the server takes to say what time it is.
fn timed(server: &Server<Connections>) -> Result<Duration, Failure> {
    let began = Instant::now();
    ask::<Vec<u64>>(server, &redis::cmd("TIME"))?;
    Ok(began.elapsed())
}

fn clock_ahead(server: &Server<Connections>) -> Result<i64, Failure> {
    let (began, at) = (Instant::now(), SystemTime::now());
    let time: Vec<i64> = ask(server, &redis::cmd("TIME"))?;
    let [seconds, micros] = time[..] else { return Err(Failure::strange_answer()) };
    let middle = at + began.elapsed() / 2;
    let here = middle.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let there = seconds.saturating_mul(1000).saturating_add(micros / 1000);
    Ok(there.saturating_sub(i64::try_from(here).unwrap_or(i64::MAX)))
}

fn ask<T: FromRedisValue + Send>(server: &Server<Connections>, command: &Cmd) -> Result<T, Failure> {
    let question = Simple::new(Operation::Inspect, Retry::Once, command.clone(), |_line, reply| read(reply));
    server.answer(&question, Span::from_now(CONNECT_WITHIN))
}
