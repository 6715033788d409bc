//! A pool of the user's.

use async_trait::async_trait;
use lock_core::RequestOrder;

use super::lender::{Lender, Lent};
use crate::classify::pool_failure;
use crate::failure::Failure;

/// The user's pool.
pub use deadpool_redis::Pool;

#[async_trait]
impl Lender for Pool {
    fn order(&self) -> RequestOrder {
        RequestOrder::Unordered
    }

    async fn lend(&self) -> Result<Box<dyn Lent>, Failure> {
        Ok(Box::new(self.get().await.map_err(|error| pool_failure(&error))?))
    }
}

impl Lent for deadpool_redis::Connection {
    fn end(self: Box<Self>) {
        drop(Self::take(*self));
    }
}
