//! The primitives that threads share, named once so that a tool that tries interleavings can run the same files.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic};
pub(crate) use std::thread;
