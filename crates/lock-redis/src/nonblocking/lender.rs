//! The user's connections, as they are lent.

use async_trait::async_trait;
use lock_core::RequestOrder;
use redis::aio::ConnectionLike;

use crate::failure::Failure;

/// A connection or a pool of the user's.
#[async_trait]
pub(crate) trait Lender: Send + Sync {
    /// Whether requests take effect in the order in which they were sent.
    fn order(&self) -> RequestOrder;

    /// A connection for one request.
    async fn lend(&self) -> Result<Box<dyn Lent>, Failure>;
}

/// A connection of the user's, for one request.
pub(crate) trait Lent: ConnectionLike + Send + Sync {
    /// It broke.
    fn end(self: Box<Self>) {}
}
