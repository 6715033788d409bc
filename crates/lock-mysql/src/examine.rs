//! What operators should know of a database.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::examine::Check;
use lock_core::{BackendError, Operation};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::MysqlConfig;
use crate::blocking::bridge;
use crate::connect::Connector;
use crate::error::failed;
use crate::variables::Variables;
use crate::version::Version;

/// How far the server's clock may be off.
const CLOCK: Duration = Duration::from_secs(1);

/// Connects, and asks.
pub(crate) fn examine(config: &MysqlConfig) -> Result<Vec<Check>, BackendError> {
    bridge()?.block_on(ask(config)).map_err(|error| error.of_operation(Operation::Inspect))
}

async fn ask(config: &MysqlConfig) -> Result<Vec<Check>, BackendError> {
    let mut connection = lock_sql::connect(&Connector { config: config.clone() }).await?;
    let variables = Variables::ask(&mut connection).await.map_err(failed)?;
    Ok(vec![
        Check::ok("reach", format!("connected to {}", config.address.place())),
        version(&variables),
        durability(&variables),
        binary_log(&variables),
        clock(&mut connection).await.map_err(failed)?,
        rights(&mut connection).await.map_err(failed)?,
    ])
}

fn version(variables: &Variables) -> Check {
    let version = Version::of(variables.get("version"));
    match version.untested() {
        None => Check::ok("version", version.to_string()),
        Some(warning) => Check::remark("version", warning).with_remedy(Version::REMEDY),
    }
}

fn durability(variables: &Variables) -> Check {
    let setting = variables.get("innodb_flush_log_at_trx_commit");
    // MariaDB has a stricter one, with which the binary log does not matter.
    if setting == "3" && variables.is_mariadb() {
        return Check::ok("durability", "each commit reaches the disk before the server confirms it");
    }
    if variables.is_on("log_bin") && variables.get("sync_binlog") != "1" {
        let message = "sync_binlog is not 1: a crash of the machine loses locks that were granted";
        return Check::finding("durability", message).with_remedy("set sync_binlog to 1");
    }
    if setting == "1" {
        return Check::ok("durability", "each commit reaches the disk before the server confirms it");
    }
    let message =
        format!("innodb_flush_log_at_trx_commit is {setting}: a crash of the server or its machine loses locks");
    Check::finding("durability", message).with_remedy("set innodb_flush_log_at_trx_commit to 1")
}

fn binary_log(variables: &Variables) -> Check {
    if !variables.is_on("log_bin") {
        return Check::ok("binary log", "off: there is no replica");
    }
    if variables.get("binlog_format") == "STATEMENT" {
        return Check::finding("binary log", "binlog_format is STATEMENT: the server refuses all requests")
            .with_remedy("set binlog_format to ROW or MIXED");
    }
    if variables.is_on("rpl_semi_sync_master_enabled") || variables.is_on("rpl_semi_sync_source_enabled") {
        return Check::ok(
            "binary log",
            "semi-synchronous, unless the replica is slow: then a fail-over may lose grants",
        );
    }
    Check::remark(
        "binary log",
        "asynchronous: a fail-over may lose the latest grants, and then two clients hold one lock",
    )
    .with_remedy("have resources check fencing tokens")
}

async fn clock(connection: &mut Conn) -> Result<Check, mysql_async::Error> {
    let server: Option<u64> =
        connection.query_first("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").await?;
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let off = Duration::from_micros(server.unwrap_or_default()).abs_diff(here);
    if off > CLOCK {
        return Ok(Check::remark(
            "clock",
            format!("the server's clock is {:.1} s off this machine's", off.as_secs_f64()),
        )
        .with_remedy("leases are timed by the server's clock: do not set it forward while locks are held"));
    }
    Ok(Check::ok("clock", "the server's clock agrees with this machine's"))
}

async fn rights(connection: &mut Conn) -> Result<Check, mysql_async::Error> {
    let secrets = connection.query_drop("SELECT owner FROM leasehold_hold LIMIT 0").await;
    Ok(match secrets {
        Ok(()) => Check::remark("rights", "this account reads the tables, which hold the secrets of all lock owners")
            .with_remedy("connect as an account that may only run the procedures: see `leasehold mysql schema`"),
        Err(mysql_async::Error::Server(told)) if told.code == 1146 => {
            Check::ok("rights", "the tables are made by the first client that may")
        }
        Err(mysql_async::Error::Server(_)) => {
            Check::ok("rights", "this account runs the procedures, and reads no secrets")
        }
        Err(failure) => return Err(failure),
    })
}
