//! A Redis Cluster: each of its primaries keeps a part of the locks.
//!
//! A client has one [`Redis`](crate::blocking::Redis) for each primary that it needs, made when it is first needed. Every request is
//! about one lock, and so about one hash slot. `slot_map` says which primary serves that, `topology` keeps the map up to date, and
//! `routing` decides where a request goes next if a server does not serve it. The reasons are in `docs/design/0022-clusters.md`.

pub mod blocking;
mod client;
mod listing;
#[cfg(feature = "async")]
pub mod nonblocking;
mod redirect;
mod routing;
mod slot_map;
mod topology;

pub(crate) use redirect::{Address, Redirect};
#[cfg(feature = "fuzz")]
pub(crate) use slot_map::SlotMap;
