//! What a lock is acquired for, as types: they tell apart the locks and the guards of the facades.

/// Held alone: the lock of a mutex, and the write side of a read-write lock.
#[derive(Debug)]
pub enum Exclusive {}

/// Held together with all others who read.
#[derive(Debug)]
pub enum Shared {}

/// Held together with as many others as a semaphore has permits for.
#[derive(Debug)]
pub enum Permits {}

/// Held in any of these ways: what is decided at run time.
#[derive(Debug)]
pub enum AnyKind {}
