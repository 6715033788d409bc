//! The blocking form of an async node of a quorum.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, AsyncQuorumNode, BlockingQuorumNode, QuorumNode, Told};
use lock_core::{BackendError, Effect, ErrorKind, EventSink, Location, LockName};
use tokio::time::timeout;

use crate::bridged::Bridged;

/// How much longer than `within` to wait for a node: one that watches the time itself can say more about the request.
/// Chosen: more than the precision of timers.
const GRACE: Duration = Duration::from_millis(20);

impl<N: AsyncQuorumNode> QuorumNode for Bridged<N> {
    fn address(&self) -> &str {
        self.inner().address()
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.inner().locate(name)
    }

    fn listen(&self, sink: EventSink) {
        let _entered = self.bridge().handle().enter();
        self.inner().listen(sink);
    }
}

impl<N: AsyncQuorumNode> BlockingQuorumNode for Bridged<N> {
    /// The inner node's for the keeper, on the same bridge.
    fn for_keeper(&self) -> Self {
        let _entered = self.bridge().handle().enter();
        Self::new(Arc::new(self.inner().for_keeper()), self.bridge().clone())
    }

    fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError> {
        let told = self.bridge().block_on(async { timeout(within + GRACE, self.inner().ask(ask, within)).await });
        told.unwrap_or_else(|_| {
            let message = format!("{} did not answer within {}", self.address(), humantime::format_duration(within));
            Err(BackendError::new("bridge", ask.operation(), ErrorKind::Timeout, Effect::Unknown, message))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::time::sleep;

    use super::*;
    use crate::bridge::Bridge;

    /// Answers after this time.
    #[derive(Debug)]
    struct Node(Duration);

    impl QuorumNode for Node {
        fn address(&self) -> &str {
            "node:1"
        }

        fn listen(&self, _sink: EventSink) {}
    }

    impl AsyncQuorumNode for Node {
        fn for_keeper(&self) -> Self {
            Self(self.0)
        }

        async fn ask(&self, _ask: &Ask, _within: Duration) -> Result<Told, BackendError> {
            sleep(self.0).await;
            Ok(Told::Abstains)
        }
    }

    fn node(answers_after: Duration) -> Bridged<Node> {
        Bridged::new(Arc::new(Node(answers_after)), Bridge::start().unwrap())
    }

    #[test]
    fn a_node_answers_also_over_the_keepers_connection() {
        let node = node(Duration::from_millis(1));
        assert_eq!(node.ask(&Ask::Look, Duration::from_secs(20)), Ok(Told::Abstains));
        let keeper = node.for_keeper();
        drop(node);
        assert_eq!(keeper.ask(&Ask::Look, Duration::from_secs(20)), Ok(Told::Abstains));
    }

    #[test]
    fn a_request_to_a_node_that_never_answers_ends_in_time() {
        let (begun, within) = (Instant::now(), Duration::from_millis(50));
        let error = node(Duration::MAX).ask(&Ask::Look, within).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
        assert!(error.to_string().contains("node:1 did not answer within 50ms"), "{error}");
        assert!((within..Duration::from_secs(20)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }
}
