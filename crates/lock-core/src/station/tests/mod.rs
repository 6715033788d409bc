//! Tests of the machine, from tables of all states and inputs to random play against a small store.

mod adopting;
mod away;
mod barging;
mod edges;
mod floor;
mod forgetful;
mod inputs;
mod keeping;
mod late;
mod many;
mod model;
mod owing;
mod property;
mod reading;
mod replacing;
mod rig;
mod scenario;
mod semaphore;
mod session;
mod sharing;
mod stalled;
mod states;
mod table;
mod words;
mod world;
