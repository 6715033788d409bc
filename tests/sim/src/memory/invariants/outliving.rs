//! Nothing is left at the store after everybody has left and every ttl has ended.

use lock_core::{LockName, Moment};

use crate::memory::store::Server;

pub(crate) fn check(server: &Server, now: Moment, names: &[LockName]) -> Result<(), String> {
    let left = |name: &LockName| server.holds(now, name).next().map(|hold| format!("{name} is still held: {hold:?}"));
    names.iter().find_map(left).map_or(Ok(()), Err)
}
