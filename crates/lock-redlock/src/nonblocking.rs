//! The quorum for tokio. `verbs` is compiled for threads as well, and `run` runs a request.

mod run;
mod verbs;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt, select};
use lock_core::node::AsyncQuorumNode as Node;
use lock_core::{BackendError, Ttl};
use lock_forms::nonblocking as both;
use lock_host::SharedClock;
use tokio::time::timeout;

use crate::epochs::HostEpochs;
use crate::quorum::{Quorum, Request, Verdict, no_verdict};
use run::{Common, Run, Shared};

/// A quorum for tokio. Each node has one connection, which keeps the order, and another one for the keeper.
#[derive(Debug)]
pub struct Redlock<N> {
    shared: Arc<Shared<N>>,
    side: Side,
}

/// Whose connections these are.
#[derive(Debug)]
enum Side {
    Client,
    /// The keeper is flushed when the client's runtime has ended.
    Keeper,
}

impl<N: Node> Redlock<N> {
    /// As [`of`](Self::of), with the caller's clock.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on_clock(nodes: Vec<N>, max_ttl: Ttl, clock: SharedClock) -> Result<Self, BackendError> {
        let addresses: Vec<_> = nodes.iter().map(|node| node.address().to_owned()).collect();
        let quorum = Quorum::new(&addresses, max_ttl, Box::new(HostEpochs))?;
        let common = Arc::new(Common::new(quorum));
        Ok(Self { shared: Arc::new(Shared { nodes, common, clock }), side: Side::Client })
    }

    /// Runs a request up to its verdict. The rest of it continues in the background.
    async fn run(&self, request: Request, within: Duration) -> Result<Verdict, BackendError> {
        let mut run = Run::begin(Arc::clone(&self.shared), request, within);
        let verdict = run.verdict().await;
        if run.is_unfinished() {
            tokio::spawn(run.finish());
        }
        verdict.ok_or_else(no_verdict)
    }

    fn knows_its_nodes(&self) -> bool {
        self.shared.common.state().quorum.knows_its_nodes()
    }

    /// Over connections of the keeper's runtime.
    fn on_keepers_connections(&self) -> Arc<Self> {
        let Shared { nodes, common, clock } = &*self.shared;
        let nodes = nodes.iter().map(Node::for_keeper).collect();
        let (common, clock) = (Arc::clone(common), Arc::clone(clock));
        Arc::new(Self { shared: Arc::new(Shared { nodes, common, clock }), side: Side::Keeper })
    }

    /// Sends the rest of earlier requests, and waits for it.
    async fn settle(&self, within: Duration) {
        let held_back = Run::of_held_back(Arc::clone(&self.shared), within);
        let settled = self.shared.common.settled();
        _ = match self.side {
            Side::Client => {
                if held_back.is_unfinished() {
                    tokio::spawn(held_back.finish());
                }
                timeout(within, settled).await
            }
            // What was sent over the client's connections may never be reported.
            Side::Keeper => timeout(within, select(pin!(held_back.finish()), pin!(settled)).map(drop)).await,
        };
    }
}
