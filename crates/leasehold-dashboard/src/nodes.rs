//! The nodes of a quorum: whether they vote.

use std::sync::Arc;

use leasehold::BackendError;
use leasehold::redlock::nonblocking::Quorum;
use leasehold::redlock::{Purpose, Report};

use crate::listing::WITHIN;

/// The nodes of a quorum. Nothing is written to them.
#[derive(Debug)]
pub(crate) struct Nodes(pub(crate) Arc<Quorum>);

impl Nodes {
    /// Whether the nodes vote. The quorum then also knows which of them count when its locks are listed.
    pub(crate) async fn report(&self) -> Result<Report, BackendError> {
        self.0.pass(Purpose::Look, WITHIN).await
    }
}
