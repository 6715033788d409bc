//! What a claim says about its place, the sessions of clients, and the server's time.

use std::time::Duration;

use lock_core::Moment;

/// Where a client is notified of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inbox(pub u64);

/// Names a session with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// How long a session lives without a request.
pub(crate) const LIVES: Duration = Duration::from_secs(10);

/// How often the server that leads pings those that follow it, at least.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// What a claim says about a place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// It wants none.
    Unwanted,
    /// It wants one, and cannot be notified of its turn: `-` on the wire.
    Silent,
    /// It wants one, and is notified here.
    Told(Inbox),
}

/// Milliseconds on the server's clock.
pub(crate) type Millis = u64;

pub(crate) fn millis(moment: Moment) -> Millis {
    moment.as_nanos() / 1_000_000
}

pub(crate) fn micros(moment: Moment) -> u64 {
    moment.as_nanos() / 1000
}
