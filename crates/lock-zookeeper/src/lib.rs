//! The backend for ZooKeeper: locks in the layout of Curator's recipes, so that Java services and this library exclude each other and wait in
//! one queue.
//!
//! Not part of `leasehold` yet: TLS, SASL and the command that raises the base of the tokens are missing.

mod claim;
mod config;
mod data;
mod described;
mod directory;
mod entries;
mod entry;
mod error;
mod inspect;
mod latches;
mod path;
mod place;
mod proof;
mod session;
mod sessions;
mod tokens;

pub mod blocking;
pub mod nonblocking;

pub use config::ZookeeperConfig;
