//! State that all stations of a client share, spread over many mutexes so that two stations rarely contend for one.

use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Chosen: many more than the cores of a machine, so that two threads rarely need the same one.
const SHARDS: usize = 32;

/// Many values of a kind, each behind a mutex. A key always leads to the same one.
pub(crate) struct Sharded<T> {
    shards: [Shard<T>; SHARDS],
    /// An attacker who picks names that all fall into one shard only slows that shard down.
    hasher: BuildHasherDefault<DefaultHasher>,
}

/// On its own cache lines: two mutexes on one line would slow each other down.
#[derive(Default)]
#[repr(align(128))]
struct Shard<T>(Mutex<T>);

impl<T> Sharded<T> {
    /// The one for a key.
    pub(crate) fn of(&self, key: &(impl Hash + ?Sized)) -> MutexGuard<'_, T> {
        let hash = self.hasher.hash_one(key);
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        lock(&self.shards[index].0)
    }

    /// All of them, one after the other.
    pub(crate) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.shards.iter().map(|shard| lock(&shard.0))
    }
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Shard::default()), hasher: BuildHasherDefault::default() }
    }
}

impl<T> fmt::Debug for Sharded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded").field("shards", &SHARDS).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_what_it_left_and_all_are_found() {
        let sharded = Sharded::<Vec<u32>>::default();
        for key in 0..1000 {
            sharded.of(&key).push(key);
        }
        assert!((0..1000).all(|key| sharded.of(&key).contains(&key)));
        assert_eq!(sharded.all().map(|shard| shard.len()).sum::<usize>(), 1000);
        assert!(sharded.all().all(|shard| shard.len() < 500), "one of them has half of all");
    }
}
