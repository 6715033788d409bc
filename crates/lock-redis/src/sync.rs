//! The synchronization types, named in one place so that a tool that explores schedules can run the same files.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
