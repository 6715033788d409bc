//! The backend for etcd: locks in the layout of etcd's own clients, so that Go services with `concurrency.Mutex`, `etcdctl lock` and this
//! library exclude each other and wait in one queue.

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
