//! The decisions of stores that keep entries in an order: a reviewed table, and every schedule at a small size.

mod exact;
mod explore;
mod model;
mod schedules;
mod table;
