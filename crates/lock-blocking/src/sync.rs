//! What threads meet by. Named here once, so that the same files can be run under a tool that tries their interleavings.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic};
pub(crate) use std::thread;
