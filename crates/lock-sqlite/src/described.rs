//! What a configuration of SQLite has in common with those of other stores.

use std::time::Duration;

use lock_core::examine::Check;
use lock_core::{BackendError, Invalid, Reach, StoreConfig};

use crate::{SqliteConfig, examine};

impl StoreConfig for SqliteConfig {
    fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::from_url(url)
    }

    fn shown(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn reach(&self) -> Reach {
        Reach::Machine
    }

    fn promise(&self) -> String {
        "at most one holder among the processes of this machine".to_owned()
    }

    fn op_timeout(&self) -> Option<Duration> {
        self.op_timeout
    }

    fn examine(&self) -> Result<Vec<Check>, BackendError> {
        Ok(examine::examine(self))
    }
}
