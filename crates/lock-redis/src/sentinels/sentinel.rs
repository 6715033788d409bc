//! What one sentinel says about the primary.

use std::collections::HashMap;

use lock_core::{Effect, ErrorKind};
use redis::{Connection, ConnectionInfo, ErrorKind as RedisKind, RedisError};

use crate::address::Address;
use crate::classify::classify;
use crate::connect::{bound, connecting, for_one_question};
use crate::failure::Failure;
use crate::span::Span;

/// Where the primary is, and in which configuration of the deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Rises with each fail-over.
    pub(crate) epoch: u64,
    /// The run of the server, if the sentinel knows it.
    pub(crate) run_id: Option<String>,
    pub(crate) address: Address,
}

impl Named {
    /// Whether the primary has moved since the last time it was named, in the same epoch or an earlier one.
    ///
    /// Sentinels may know one server by several addresses, such as a name and a number. Within an epoch, sentinels do not move the
    /// primary, but an operator may.
    pub(crate) fn has_moved_since(&self, last: &Self) -> bool {
        let is_same_run = self.run_id.is_some() && self.run_id == last.run_id;
        self.epoch > last.epoch || (self.address != last.address && !is_same_run)
    }
}

/// Asks a sentinel for the primary of this name.
pub(crate) fn ask(node: &ConnectionInfo, master: &str, span: Span) -> Result<Named, Failure> {
    let shown = shown(node);
    let failed = |error| refused(&shown, span, &error);
    let mut sentinel = for_one_question(node, span).map_err(failed)?;
    // In this order. While a sentinel carries out a fail-over, it has the new epoch before the new address, and must not
    // be understood to name the old primary in the new epoch.
    let about = redis::cmd("SENTINEL").arg("MASTER").arg(master).query::<HashMap<String, String>>(&mut sentinel);
    let about = about.map_err(|error| match unknown(&error) {
        true => unknown_master(&shown, master, &mut sentinel),
        false => failed(error),
    })?;
    // Each command has the time that is left.
    bound(&sentinel, span.left()).map_err(failed)?;
    let address = redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master).query(&mut sentinel);
    let address: Option<(String, u16)> = address.map_err(failed)?;
    let (host, port) = address.ok_or_else(|| unknown_master(&shown, master, &mut sentinel))?;
    let epoch = about.get("config-epoch").and_then(|epoch| epoch.parse().ok());
    let run_id = about.get("runid").filter(|run_id| !run_id.is_empty()).cloned();
    Ok(Named { epoch: epoch.ok_or_else(Failure::strange_answer)?, run_id, address: Address { host, port } })
}

/// A sentinel as it is shown to users.
fn shown(node: &ConnectionInfo) -> String {
    let address = Address::of(node.addr()).map(|address| address.to_string());
    format!("the sentinel {}", address.unwrap_or_else(|| node.addr().to_string()))
}

fn refused(shown: &str, span: Span, error: &RedisError) -> Failure {
    let code = error.code().unwrap_or_default();
    if error.kind() == RedisKind::AuthenticationFailed || ["NOAUTH", "WRONGPASS"].contains(&code) {
        return Failure::new(ErrorKind::Denied, Effect::None, format!("{shown} refused user and password"))
            .remedy("check sentinel_username and sentinel_password");
    }
    if code == "NOPERM" {
        return Failure::new(ErrorKind::Denied, Effect::None, format!("{shown} refused a command"))
            .remedy("give the user of the sentinels +sentinel +subscribe +ping and &+switch-master");
    }
    if error.to_string().contains("unknown command") {
        return Failure::new(ErrorKind::Config, Effect::None, format!("{shown} is not a sentinel"))
            .remedy("use redis:// for an ordinary server, or give the addresses of the sentinels");
    }
    classify(connecting(shown, span.within), error)
}

fn unknown(error: &RedisError) -> bool {
    error.to_string().contains("No such master")
}

/// Says which names the sentinel knows.
fn unknown_master(shown: &str, master: &str, sentinel: &mut Connection) -> Failure {
    let all = redis::cmd("SENTINEL").arg("MASTERS").query::<Vec<HashMap<String, String>>>(sentinel);
    let mut names: Vec<_> = all.unwrap_or_default().iter().filter_map(|known| known.get("name").cloned()).collect();
    names.sort();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!("{shown} knows no primary named \"{master}\"; it knows {known}");
    Failure::new(ErrorKind::Config, Effect::None, message)
}
