//! Stores that keep the entries of one lock in an order of their own, and drop an entry with its session or lease: who holds, who waits,
//! and which entries a waiter watches.
//!
//! Each mode is a [`weight`] against a capacity: [`WHOLE`] for a lock, the limit in force for a semaphore. An entry holds if the store
//! says so, or if it fits beside the granted entries and the waiters before it. So the longest prefix that fits holds, and a heavy
//! waiter at the head blocks lighter ones behind it. Granted entries count wherever they stand.
//!
//! A waiter and the entries that it watches weigh more than the capacity. So it cannot fit while they all stand, whatever else arrives,
//! ends or is granted. It sleeps until one of them ends or is replaced by another, and then decides anew. A limit that rises also
//! ends its sleep: the store watches its record of the limit, and every waiter decides anew. A limit that falls wakes nobody.
//!
//! A store that says who was granted writes the grant of a waiter only if the limit is still that of the decision. Arrivals, ends and
//! other grants since then do no harm. An entry that barges or replaces another has to fit beside all other [`holders`], and is written
//! only if nothing has changed since these were listed.

use std::iter;

use lock_core::Mode;

/// The capacity of a lock, for one writer or for as many readers.
pub const WHOLE: u32 = u32::MAX;

/// How much of the capacity a lease of this mode takes: a writer takes all of it, a reader 1, and permits their number.
pub const fn weight(mode: Mode) -> u32 {
    match mode {
        Mode::Shared => 1,
        Mode::Permits { count, .. } => count.get(),
        Mode::Exclusive | _ => WHOLE,
    }
}

/// An entry in the store's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<K> {
    /// Identifies it.
    pub key: K,
    /// Its [`weight`].
    pub weight: u32,
    /// Whether the store says that it holds. A lock does not need this if all entries arrive at the end of the order: then the order alone
    /// decides, and an entry that fits once fits until it ends. A semaphore needs it, so that nobody loses permits when the limit falls.
    pub is_granted: bool,
}

/// The meaning of the order for one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a, K> {
    /// It holds, or may become a hold now.
    Granted,
    /// It waits.
    Waits {
        /// Its position, 1 for the next waiter.
        position: u32,
        /// The entries whose end may let it in, in order. None of them could be left out. They are late ones, so that the end of a hold wakes
        /// few waiters: one of a mutex. For `count` permits of `limit` they are at most `limit - count + 1`. There are none if the
        /// entry weighs more than the capacity. Then only a higher limit lets it in, and the entries behind it wait for its end:
        /// callers refuse to write such an entry, and delete it after the limit fell.
        watched: Vec<&'a K>,
    },
}

/// Decides for the entry with this key, given all entries of the lock in order. `None` if it is not there: it was deleted, or its session
/// or lease has ended.
pub fn decide<'a, K: PartialEq>(entries: &'a [Entry<K>], me: &K, capacity: u32) -> Option<Decision<'a, K>> {
    let me = entries.iter().position(|entry| entry.key == *me)?;
    let mut holds = holds(entries, capacity);
    let waiting = holds.by_ref().take(me).filter(|holds| !holds).count();
    if holds.next()? {
        return Some(Decision::Granted);
    }
    let position = u32::try_from(waiting).unwrap_or(u32::MAX).saturating_add(1);
    Some(Decision::Waits { position, watched: watched(entries, me, capacity) })
}

/// The entries that hold now, in order: the granted ones, and those that may become holds. All others wait.
pub fn holders<K>(entries: &[Entry<K>], capacity: u32) -> impl Iterator<Item = &Entry<K>> {
    iter::zip(entries, holds(entries, capacity)).filter_map(|(entry, holds)| holds.then_some(entry))
}

/// Whether each entry holds, in order.
fn holds<K>(entries: &[Entry<K>], capacity: u32) -> impl Iterator<Item = bool> {
    let mut taken = total(entries.iter().filter(|entry| entry.is_granted));
    entries.iter().map(move |entry| {
        if entry.is_granted {
            return true;
        }
        taken = taken.saturating_add(entry.weight.into());
        taken <= capacity.into()
    })
}

/// What this waiter watches: all that counts before it, without what can be left out, beginning with the earliest.
fn watched<K>(entries: &[Entry<K>], me: usize, capacity: u32) -> Vec<&K> {
    let (before, behind) = entries.split_at(me);
    let counted = before.iter().chain(behind.iter().filter(|entry| entry.is_granted));
    let mut taken = total(counted.clone().chain(behind.first()));
    let is_needed = |entry: &&Entry<K>| {
        let without = taken.saturating_sub(entry.weight.into());
        let can_be_left_out = without > capacity.into();
        if can_be_left_out {
            taken = without;
        }
        !can_be_left_out
    };
    counted.filter(is_needed).map(|entry| &entry.key).collect()
}

fn total<'a, K: 'a>(entries: impl Iterator<Item = &'a Entry<K>>) -> u64 {
    entries.fold(0, |sum, entry| sum.saturating_add(entry.weight.into()))
}
