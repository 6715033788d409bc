//! Verifying the counter of fencing tokens for the server that answers, which begins a dwell if leases may have been forgotten. No I/O.

use lock_core::Operation;
use redis::{Cmd, Value};

use super::server_info::ServerInfo;
use crate::failover::GRACE;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::keys::{Key, Scope};
use crate::script;
use crate::wire::{Call, Line, Question, Retry, read, to_millis};

/// Verifies the counter of one server against the server that was greeted, and announces the longest ttl, unless that was done
/// before: earlier clients wrote the incarnation that was verified last, and the longest ttl, in milliseconds. `promoted` is
/// `unpromoted` for a server that was never promoted.
pub(crate) fn of_server(
    server_info: &ServerInfo,
    promoted: &str,
    verified: Option<String>,
    known: Option<u64>,
) -> Option<Cmd> {
    let (incarnation, longest) = (server_info.incarnation(), to_millis(server_info.failover.longest()));
    if verified.as_ref() == Some(&incarnation) && known >= Some(longest) {
        return None;
    }
    let mut verify = redis::cmd("EVAL");
    verify.arg(script::VERIFY.text()).arg(4).arg(&Key::verified(Scope::Database));
    verify.arg(incarnation).arg(verified.unwrap_or_default()).arg(promoted).arg(longest).arg(to_millis(GRACE));
    Some(verify)
}

/// Verifies the counter of a hash slot. Sent before the first request of a connection that depends on it, one round trip earlier: so
/// if it fails, the request was not sent.
pub(crate) fn of_slot(server_info: &ServerInfo, slot: HashSlot) -> Call {
    let mut verify = redis::cmd("EVAL");
    let keys = Key::verified_in(slot);
    verify.arg(script::VERIFY_SLOT.text()).arg(keys.len()).arg(&keys);
    told(Call::plain(verify), server_info)
}

/// The arguments of the script for one hash slot.
fn told(call: Call, server_info: &ServerInfo) -> Call {
    let longest = to_millis(server_info.failover.longest());
    call.arg(&server_info.run_id).arg(longest).arg(to_millis(GRACE))
}

/// Reads the answer: the longest ttl of any client that used this counter, in milliseconds.
pub(crate) fn longest(reply: Value) -> u64 {
    read::<(u64, u64)>(reply).map_or(0, |(_, longest)| longest)
}

/// Verifies the counter of a hash slot, one of many.
pub(crate) struct VerifySlot(pub(crate) HashSlot);

impl Question for VerifySlot {
    type Answer = ();
    const OPERATION: Operation = Operation::Connect;
    const RETRY: Retry = Retry::Once;

    fn call(&self, Line { server_info, .. }: Line<'_>) -> Result<Call, Failure> {
        Ok(told(Call::script(&script::VERIFY_SLOT, &Key::verified_in(self.0)), server_info))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<(), Failure> {
        read::<(u64, u64)>(reply).map(drop)
    }
}
