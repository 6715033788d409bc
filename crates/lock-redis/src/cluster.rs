//! The map of a Redis Cluster, each of whose primaries keeps a part of the locks.
//!
//! Every request is about one lock, and so about one hash slot. `slot_map` says which primary serves that, and `topology` keeps the map up
//! to date. The reasons are in `docs/design/0022-clusters.md`.

mod redirect;
mod slot_map;
mod topology;

pub(crate) use redirect::Redirect;
#[cfg(feature = "dev")]
pub(crate) use slot_map::SlotMap;
pub(crate) use topology::Topology;
