//! Tests of the machine, from a table of all it does to random play against a small store.

mod edges;
mod floor;
mod late;
mod model;
mod owing;
mod property;
mod rig;
mod scenario;
mod sharing;
mod table;
mod words;
mod world;
