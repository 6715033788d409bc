//! Redis for tokio.

mod backend;
pub(crate) mod batcher;
mod client;
mod handed_in;
mod lender;
mod link;
mod listing;
mod live;
#[cfg(feature = "deadpool")]
mod pool;
#[cfg(feature = "deadpool")]
mod pooled;
mod server;
mod silence;
mod source;
pub(crate) mod writes;

use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{Either, join_all};
use lock_core::latch::{Request, Seen};
use lock_core::{Answer, BackendError, Claim, Lease, LockName, Renewed};
use lock_forms::nonblocking as both;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout_at};

use crate::failure::Failure;
use crate::requests::renewal::Renewal;
use crate::routing::PAUSE;
use crate::servers::{Many, Servers, renewed};
use crate::span::Span;
use crate::wire::Question;

pub(crate) use self::link::Link as Connections;

#[cfg(feature = "deadpool")]
use self::lender::Lender;
#[cfg(feature = "deadpool")]
pub use self::pool::Pool;

/// A Redis, used from tokio over one connection of its own to each server, or through the user's client.
///
/// With its own connections, requests for one lock take effect in order, except in a cluster, and drawing a token costs one increment of a
/// counter. A connection, manager or pool that is passed in is shared: the keeper's renewals go through it, too, and every grant
/// also reads the server's clock, since such a client does not show when it has reconnected. Waiters poll; those of a
/// pool are notified if the pool comes with a URL (`Redis::pooled`).
pub struct Redis {
    servers: Servers<Connections>,
    /// One task asks for the map of a cluster at a time.
    refreshing: Mutex<()>,
    warnings: Vec<String>,
}

impl Redis {
    fn over(servers: Servers<Connections>, warnings: Vec<String>) -> Self {
        Self { servers, refreshing: Mutex::default(), warnings }
    }

    /// Asks the server that has a lock.
    fn answer<'a, Q: Question + Sync>(
        &'a self,
        name: &'a LockName,
        question: &'a Q,
        span: Span,
    ) -> impl Future<Output = Result<Q::Answer, Failure>> + Send {
        match &self.servers {
            Servers::One(server) => Either::Left(server.answer(question, span)),
            // Boxed: most requests do not need this space.
            Servers::Many(many) => Either::Right(Box::pin(self.follow(many, many.routing(name, span), question, span))),
        }
    }

    /// What one script renews is asked for itself. All of that is sent together, and a server that does not answer delays no other.
    async fn renew_all(&self, leases: &[Lease], span: Span) -> Result<Vec<Renewed>, BackendError> {
        let answers = leases.chunks(self.servers.wire().locks_per_script()).map(async |batch: &[Lease]| {
            let Some(first) = batch.first() else { return (0, Ok(Vec::new())) };
            (batch.len(), self.answer(&first.name, &Renewal(batch), span).await)
        });
        renewed(join_all(answers).await)
    }

    /// Asks for the map, or waits for the task that does. Whether that helped shows in the map.
    async fn refresh(&self, many: &Many<Connections>, span: Span) {
        let refresh = async {
            let _one_at_a_time = self.refreshing.lock().await;
            let directory = Arc::clone(&many.directory);
            in_background(move || directory.refresh(span)).await
        };
        _ = timeout_at(span.until.into(), refresh).await;
    }

    /// A claim that takes a place is about to be sent: the client should be notified of its turn.
    fn claim_at_once(&self, _claim: &Claim, _span: Span) -> Result<Option<Answer>, Failure> {
        self.listen_in_time();
        Ok(None)
    }

    /// A wait for a latch is about to begin: the client should be notified of its end.
    fn look_at_once(&self, _request: &Request, _span: Span) -> Result<Option<Seen>, Failure> {
        self.listen_in_time();
        Ok(None)
    }

    fn listen_in_time(&self) {
        if let Servers::One(server) = &self.servers {
            server.source.listen_in_time();
        }
    }
}

/// What asks where servers are is blocking code, for both forms.
async fn in_background<A: Send + 'static>(
    ask: impl FnOnce() -> Result<A, Failure> + Send + 'static,
) -> Result<A, Failure> {
    spawn_blocking(ask).await.unwrap_or_else(|_| Err(Failure::runtime_gone()))
}

/// Most requests do not need the space for this.
pub(crate) fn large<F: Future>(rare: F) -> Pin<Box<F>> {
    Box::pin(rare)
}

/// What sentinels need before they are asked again.
async fn pause() {
    sleep(PAUSE).await;
}
