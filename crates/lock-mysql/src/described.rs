//! What a configuration of MySQL has in common with those of other stores.

use std::time::Duration;

use lock_core::examine::Check;
use lock_core::{BackendError, Invalid, Reach, StoreConfig};

use crate::{MysqlConfig, examine};

impl StoreConfig for MysqlConfig {
    fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::from_url(url)
    }

    fn shown(&self) -> String {
        self.address.place()
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn promise(&self) -> String {
        "at most one holder, while the server's clock is not set forward, each commit reaches the disk and a fail-over loses nothing".to_owned()
    }

    fn op_timeout(&self) -> Option<Duration> {
        self.address.op_timeout()
    }

    fn examine(&self) -> Result<Vec<Check>, BackendError> {
        examine::examine(self)
    }
}
