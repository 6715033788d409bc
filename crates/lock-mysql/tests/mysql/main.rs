//! Tests of this store alone, on real servers.
