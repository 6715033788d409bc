//! Faults for stores that cannot really be broken: a wrapper around their clients.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::{Backend, ErrorKind, Operation};
use lock_memory::faults::{Fault as Cover, Faults as Switches, Faulty};

use crate::{Fault, Faults};

const OPERATIONS: [Operation; 7] = [
    Operation::Acquire,
    Operation::Renew,
    Operation::Release,
    Operation::Fence,
    Operation::Inspect,
    Operation::Latch,
    Operation::Limit,
];

/// Broken connections and lost replies, simulated in front of the backend. They show how the suite and the facades
/// react, not what the backend does when its file or connection really breaks.
#[derive(Default)]
pub struct OnCommand {
    switches: Switches,
    calls_before: AtomicU64,
}

impl OnCommand {
    /// Wraps a client.
    pub fn cover<B: Backend>(&self, backend: B) -> Faulty<B> {
        Faulty::new(backend, &self.switches)
    }

    fn calls(&self) -> u64 {
        OPERATIONS.iter().map(|&operation| self.switches.calls(operation)).sum()
    }
}

impl Faults for OnCommand {
    fn offers(&self) -> &[Fault] {
        &[Fault::Cut, Fault::LoseReplies]
    }

    fn begin(&self, fault: Fault) {
        let cover = match fault {
            Fault::Cut => Cover::Refused(ErrorKind::Unreachable),
            Fault::LoseReplies => Cover::LostReply,
            Fault::Hang | Fault::RestartWithData | Fault::RestartEmpty => panic!("the wrapper cannot cause {fault}"),
        };
        self.calls_before.store(self.calls(), Ordering::SeqCst);
        for operation in OPERATIONS {
            self.switches.fail_all(operation, cover);
        }
    }

    fn fired(&self) -> u64 {
        self.calls() - self.calls_before.load(Ordering::SeqCst)
    }

    fn end(&self) {
        for operation in OPERATIONS {
            self.switches.heal(operation);
        }
    }
}

impl fmt::Debug for OnCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnCommand").field("calls", &self.calls()).finish_non_exhaustive()
    }
}
