//! Locks in the memory of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::lock::{Attempt, Left, Lock};
use super::mishap::Mishap;
use crate::shared::failure::Failure;
use crate::shared::raw::Raw;

/// A lock in memory: true while it is held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<AtomicBool>);

/// Who shares a lock in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shared {
    /// All workers of a process.
    InProcess,
    /// Nobody: each deposit makes a lock of its own.
    Never,
}

/// A lock in memory as one worker sees it.
pub(crate) struct MemoryLock {
    shared: Shared,
    memory: Memory,
}

impl MemoryLock {
    /// The lock of a process, or one that is made for each deposit.
    pub(crate) fn new(shared: Shared, of_process: &Memory) -> Self {
        Self { shared, memory: of_process.clone() }
    }
}

impl Lock for MemoryLock {
    fn try_enter(&mut self, _: &mut dyn Raw, _: Attempt, _: &mut Mishap) -> Result<bool, Failure> {
        if let Shared::Never = self.shared {
            self.memory = Memory::default();
        }
        Ok(!self.memory.0.swap(true, Ordering::AcqRel))
    }

    fn leave(&mut self, _: &mut dyn Raw, _: &mut Mishap) -> Result<Left, Failure> {
        self.memory.0.store(false, Ordering::Release);
        Ok(Left::default())
    }
}
