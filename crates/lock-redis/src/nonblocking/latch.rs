//! Latches for tokio.

use std::time::Duration;

use async_trait::async_trait;
use lock_core::latch::{Act, Request, Seen, Watching};
use lock_core::{AsyncLatch, BackendError};

use super::Redis;

#[async_trait]
impl AsyncLatch for Redis {
    async fn ask(&self, request: &Request, within: Duration) -> Result<Seen, BackendError> {
        if request.act == (Act::Look { watching: Watching::Wanted }) {
            self.source.listen();
        }
        Self::ask(self, request, within).await
    }
}
