//! Marker types for the mode of locks and guards: exclusive, shared, permits.

/// Held alone: the lock of a mutex, and the write side of a read-write lock.
#[derive(Debug)]
pub enum Exclusive {}

/// Held together with all other readers.
#[derive(Debug)]
pub enum Shared {}

/// Held together with as many others as a semaphore has permits for.
#[derive(Debug)]
pub enum Permits {}

/// Held in any of these ways: what is decided at run time.
#[derive(Debug)]
pub enum AnyKind {}
