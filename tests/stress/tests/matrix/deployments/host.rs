//! The machine under the servers of a setting.

use test_support::Machine;

/// A machine whose clock only goes back. A step forward breaks an assumption of most stores.
pub(crate) struct Host {
    pub(crate) machine: Machine,
    /// By how many seconds its clock is behind.
    behind: i64,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self { machine: Machine::build(), behind: 0 }
    }

    /// Sets its clock back by a second.
    pub(crate) fn step_back(&mut self) {
        self.behind += 1;
        self.machine.step_clock(-self.behind);
    }

    /// The same. Returns whether the servers' clock, as it is read here, went back.
    pub(crate) fn turns_back(&mut self, clock: impl Fn() -> u64) -> bool {
        let before = clock();
        self.step_back();
        clock() < before
    }
}
