//! A lock as a part of what is made of several locks or holds.

use std::time::Duration;

use lock_core::{Location, LockName};

use crate::cancel::CancelToken;
use crate::clock::SharedClock;
use crate::outage::Outage;
use crate::wake_registry::CloseSignal;

/// A lock before it is acquired, for what is made of several locks or holds.
#[derive(Debug)]
pub struct Member {
    /// The name of the lock.
    pub name: LockName,
    /// Where its store keeps it, if the store can tell.
    pub location: Option<Location>,
    /// The client that will acquire it.
    pub client: ClientId,
    /// How long to wait for it; `None` for as long as it takes.
    pub wait: Option<Duration>,
    /// What ends the wait early.
    pub cancel: Option<CancelToken>,
    /// The client's clock.
    pub clock: SharedClock,
    /// The end of the client.
    pub close_signal: CloseSignal,
    /// The outage that a single failed request shows.
    pub outage: Outage,
    /// The outage that an operation timeout without an answer shows.
    pub lasting: Outage,
}

/// A client with its clones, for as long as one of them exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(usize);

impl ClientId {
    /// The client that shares this with its clones.
    pub(crate) fn of<T>(shared: &crate::sync::Arc<T>) -> Self {
        Self(std::ptr::from_ref::<T>(&**shared).addr())
    }
}
