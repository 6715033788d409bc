//! What a URL promises.

use leasehold::BackendConfig;
use leasehold::redis::OnFailover;
use lock_core::{Capabilities, Durability, ModeKind, Waiting};

use super::check::{Check, Checks};
use crate::durations::human;
use crate::locks::Locks;

/// Says what can be relied on. `docs/book/src/guarantees.md` has the conditions.
pub(super) fn check(locks: &Locks, config: &BackendConfig, checks: &mut Checks) {
    let capabilities = locks.client().capabilities();
    checks.add(Check::ok("kinds", kinds(&capabilities)));
    checks.add(Check::ok("waiting", waiting(capabilities.waiting)));
    checks.add(Check::ok("tokens", tokens(capabilities.durability)));
    checks.add(exclusion(config));
}

fn kinds(capabilities: &Capabilities) -> String {
    let word = |mode: &ModeKind| match mode {
        ModeKind::Exclusive => "mutexes",
        ModeKind::Shared => "read locks",
        ModeKind::Permits | _ => "semaphores",
    };
    capabilities.modes.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn waiting(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::QueueWithPush => {
            "first come, first served, but up to 16 of one process in a row; the next in line is notified"
        }
        Waiting::Queue => {
            "first come, first served, but up to 16 of one process in a row; the next in line asks again and again"
        }
        Waiting::Poll | _ => "no queue: the first one to ask after a release gets the lock",
    }
}

fn tokens(durability: Durability) -> &'static str {
    match durability {
        Durability::Durable => "fencing tokens rise, also after a crash",
        Durability::ClockFloor => "fencing tokens rise; after a loss of data, as long as the server's clock does",
        Durability::Process | _ => "fencing tokens rise while this process lives",
    }
}

fn exclusion(config: &BackendConfig) -> Check {
    let text = match config {
        BackendConfig::Redlock(config) => {
            format!(
                "at most one holder, also if a minority of nodes fails or forgets; the longest ttl is {}",
                config.max_ttl()
            )
        }
        BackendConfig::Redis(config) => match (config.on_failover(), config.max_ttl()) {
            (OnFailover::Dwell, Some(longest)) => format!(
                "at most one holder, also after a restart or a fail-over, which free locks wait out; the longest ttl is {}",
                human(longest)
            ),
            (OnFailover::Dwell, None) => {
                "at most one holder, also after a restart or a fail-over, which free locks wait out".to_owned()
            }
            (OnFailover::Grant | _, _) => {
                "at most one holder, unless the server forgets: after a restart without its data, or a \
                                           fail-over to a replica, a held lock may be granted again"
                    .to_owned()
            }
        },
        BackendConfig::Sqlite(_) => "at most one holder among the processes of this machine".to_owned(),
        BackendConfig::Memory(_) | _ => "at most one holder".to_owned(),
    };
    Check::ok("exclusion", text)
}
