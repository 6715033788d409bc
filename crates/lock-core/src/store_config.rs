//! The common interface of the configurations of all stores.

use std::fmt;
use std::time::Duration;

use crate::error::BackendError;
use crate::examine::Check;
use crate::invalid::Invalid;
use crate::time::Ttl;

/// The configuration of a store. Each backend has one type for it; nothing here connects to the store.
pub trait StoreConfig: fmt::Debug {
    /// Reads a URL.
    ///
    /// # Errors
    /// `Invalid`, without secrets, for anything but a URL of this store.
    fn from_url(url: &str) -> Result<Self, Invalid>
    where
        Self: Sized;

    /// The store for display: a URL without user and password.
    fn shown(&self) -> String;

    /// Which clients can share the store.
    fn reach(&self) -> Reach;

    /// How many clients can hold a lock, and on which conditions, as a sentence for display.
    fn promise(&self) -> String;

    /// How long one request may take, if the configuration says so.
    fn op_timeout(&self) -> Option<Duration> {
        None
    }

    /// The longest ttl that is granted; `None` if any is.
    fn longest_ttl(&self) -> Option<Ttl> {
        None
    }

    /// Asks the store about itself, for operators, over a connection of its own. Changes nothing beyond what connecting changes anyway.
    ///
    /// # Errors
    /// If the store cannot be reached, or breaks off.
    ///
    /// # Blocking
    /// For about a second at most for each request.
    fn examine(&self) -> Result<Vec<Check>, BackendError> {
        Ok(Vec::new())
    }
}

/// Which clients can share a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The clients of one process.
    Process,
    /// The processes of one machine.
    Machine,
    /// All machines that can connect to it.
    Network,
}

impl<C: StoreConfig> StoreConfig for Box<C> {
    fn from_url(url: &str) -> Result<Self, Invalid> {
        C::from_url(url).map(Self::new)
    }

    fn shown(&self) -> String {
        (**self).shown()
    }

    fn reach(&self) -> Reach {
        (**self).reach()
    }

    fn promise(&self) -> String {
        (**self).promise()
    }

    fn op_timeout(&self) -> Option<Duration> {
        (**self).op_timeout()
    }

    fn longest_ttl(&self) -> Option<Ttl> {
        (**self).longest_ttl()
    }

    fn examine(&self) -> Result<Vec<Check>, BackendError> {
        (**self).examine()
    }
}
