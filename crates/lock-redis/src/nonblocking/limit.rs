//! The limits of semaphores for tokio.

use std::time::Duration;

use async_trait::async_trait;
use lock_core::limit::{Request, Usage};
use lock_core::{AsyncLimit, BackendError};

use super::Redis;
use crate::acknowledged::Acknowledged;
use crate::span::Span;

#[async_trait]
impl AsyncLimit for Redis {
    async fn ask(&self, request: &Request, within: Duration) -> Result<Usage, BackendError> {
        Self::ask(self, Acknowledged::limit(request, &self.wire, Span::from_now(within)), within).await
    }
}
