//! The nodes of a quorum: whether they vote.

use leasehold::redlock::{Purpose, RedlockConfig, Report, nonblocking};
use leasehold::{BackendError, ConnectError};

use crate::listing::WITHIN;

/// The nodes of a quorum. Nothing is written to them.
#[derive(Debug)]
pub(crate) struct Nodes(nonblocking::Quorum);

impl Nodes {
    /// The nodes of a configuration, without a connection.
    pub(crate) fn of(config: &RedlockConfig) -> Result<Self, ConnectError> {
        Ok(Self(nonblocking::open(config)?))
    }

    /// Whether the nodes vote.
    pub(crate) async fn report(&self) -> Result<Report, BackendError> {
        self.0.pass(Purpose::Look, WITHIN).await
    }
}
