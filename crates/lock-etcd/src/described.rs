//! What a configuration of etcd has in common with those of other stores.

use std::time::Duration;

use lock_core::examine::Check;
use lock_core::{BackendError, Invalid, Reach, StoreConfig};

use crate::{EtcdConfig, examine};

impl StoreConfig for EtcdConfig {
    fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::from_url(url)
    }

    fn shown(&self) -> String {
        self.place()
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn promise(&self) -> String {
        "at most one holder, while a majority of the servers keeps its data".to_owned()
    }

    fn op_timeout(&self) -> Option<Duration> {
        self.op_timeout
    }

    fn examine(&self) -> Result<Vec<Check>, BackendError> {
        examine::examine(self)
    }
}
