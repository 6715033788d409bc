//! The backend for etcd: locks in the layout of etcd's own clients, so that Go services with `concurrency.Mutex`, `etcdctl lock` and this
//! library exclude each other and wait in one queue.
//!
//! # Leases
//! Each entry has a lease of etcd of its own, so it ends by itself.
//!
//! - *The length.* A ttl is rounded up to whole seconds, and etcd grants no lease that is shorter than one and a half election timeouts. Each lease lasts
//!   for a second more, so that it can be used again. If a holder dies, others wait for so much longer.
//! - *A renewal* has two requests: one renews the leases, the other reads their keys, and is written into the log. It counts only if both were answered
//!   in the raft term in which the lease was granted. A server that has lost its leadership may still answer renewals; they prove nothing.
//! - *A key that is gone* is a lock that is lost, although its lease may live.
//! - *After an election*, the next renewal moves each entry to a new lease, because the earlier leader may have the old one ended. A new leader gives
//!   all leases their whole ttl again.
//! - *A waiter's entry* expires within about eleven seconds unless it is renewed, which the client does while it waits.
//!
//! # Tokens
//! A token is the base, plus 64 times the revision that created the holder's entry, plus 1. For permits, it is the revision that took the slots. The
//! base is in the key `leasehold-base` behind the path, one for each path, so tokens of different paths do not rise together. A client reads it
//! with each claim and each renewal.
//!
//! # Transactions of the user
//! [`HeldKey`] is what a transaction compares. Two transactions, one that reads and one that writes, both with the comparison, are as good as one: the key
//! cannot have gone and come back with the same create revision. Holds that follow each other in one process share a key, if the process hands
//! the lock on among its own waiters; the comparison does not tell them apart.
//!
//! # Users
//! A user logs in again when its token has expired, and when a server has forgotten it. One that is removed, or whose password or rights change, is
//! denied from the next request on, and loses its locks at their deadlines. Entries show a hash of the owner, so a user with read access
//! cannot release a lock as its holder. A user with write access can delete the keys.
//!
//! # Known faults of servers
//! Two faults do no harm to these locks, and are tested: leaders that were suspended end leases that their successors have renewed (before 3.4.31 and
//! 3.5.13), and answer reads with old data (before 3.4.42, 3.5.28 and 3.6.9).
//!
//! # Limits
//! - A claim lists the first 33 entries of its lock, and all of them only if these do not decide.
//! - Transactions have up to 128 operations, as `--max-txn-ops` allows by default.
//! - The renewals of many leases take a server one after the other, and a follower asks the leader for each. A client with hundreds of locks names
//!   servers that are near to each other.
//! - Over loopback, with a server that waits for its disk, a pair of acquire and release takes 1.1 times as long as the same transactions alone. Renewing
//!   100 leases takes four to five times as long as renewing one.
//! - A ttl of two seconds or less gains nothing with the default election timeout.
//! - If the database reaches its quota, no lock is granted any more, except to clients that wait already.
//! - Mutexes of `concurrency` do not wait for semaphores: a name that they hold is in use as a lock.
//! - Notes of revocations (`leasehold-revoked/`) are kept for an hour.

mod base;
mod calls;
mod claim;
mod client;
mod cluster;
mod config;
mod connections;
mod described;
mod directory;
mod entry;
mod error;
mod examine;
mod fence;
#[cfg(test)]
mod golden;
mod inspect;
mod latches;
mod leases;
mod limits;
mod listed;
mod login;
mod once;
mod place;
mod proto;
mod remaining;
mod renewal;
mod servers;
mod tokens;
mod txn;
mod unpoisoned;
mod version;
mod waiters;
mod watches;

pub mod blocking;
pub mod nonblocking;

pub use config::EtcdConfig;
pub use fence::HeldKey;
