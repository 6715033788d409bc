//! What the comparisons have in common: what is measured, how a side is measured that is written in Rust, and the table.
//!
//! Reading order: `scenario` (what is measured) · `runs` (one run) · `ours` (by whom) · `process` (where) · `figures` (what is made of it) ·
//! `table`.

pub(crate) mod figures;
pub(crate) mod ours;
mod process;
pub(crate) mod runs;
pub(crate) mod scenario;
pub(crate) mod table;

/// What cargo adds to the arguments of a bench.
pub(crate) const BY_CARGO: &str = "--bench";
