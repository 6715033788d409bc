//! The promises of a URL.

use leasehold::backend::{Durability, ModeKind, Waiting};
use leasehold::{BackendConfig, Capabilities};

use leasehold::inspect::Check;

use super::check::Checks;
use crate::locks::Locks;

/// Says what can be relied on. `docs/book/src/guarantees.md` has the conditions.
pub(super) fn check(locks: &Locks, config: &BackendConfig, checks: &mut Checks) {
    let capabilities = locks.client().capabilities();
    checks.add(Check::ok("kinds", kinds(&capabilities)));
    checks.add(Check::ok("waiting", waiting(capabilities.waiting)));
    checks.add(Check::ok("tokens", tokens(capabilities.durability)));
    checks.add(Check::ok("exclusion", config.promise()));
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
            "processes in order of arrival, each with up to 17 waiters in a row; the next one is notified"
        }
        Waiting::Queue => "processes in order of arrival, each with up to 17 waiters in a row; the next one polls",
        Waiting::Poll | _ => "no queue: the first request after a release gets the lock",
    }
}

fn tokens(durability: Durability) -> &'static str {
    match durability {
        Durability::Durable => "fencing tokens rise, even after a crash",
        Durability::ClockFloor => "fencing tokens rise; after a loss of data, as long as the server's clock does",
        Durability::ByOperator => "fencing tokens rise; after a loss of data, once an operator has raised them",
        Durability::Process | _ => "fencing tokens rise while this process lives",
    }
}
