//! Tests across crates and processes; see `it/`.
