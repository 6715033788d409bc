//! The backend for ZooKeeper: locks in the layout of Curator's recipes, so that Java services and this library exclude each other and wait in
//! one queue.

mod claim;
mod config;
mod connect;
mod data;
mod described;
mod directory;
mod entries;
mod entry;
mod error;
mod examine;
mod inspect;
mod latches;
mod path;
mod place;
mod session;
mod sessions;
mod tokens;

pub mod blocking;
pub mod nonblocking;

pub use config::ZookeeperConfig;
