//! What only the backend for threads has: nodes whose threads end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::node::{Ask, BlockingQuorumNode, QuorumNode, Told};
use lock_core::{BackendError, BlockingBackend, Effect, EventSink, Ttl};
use lock_memory::node::MemoryNode;
use lock_redlock::blocking::Redlock;
use lock_redlock::quorum::Purpose;

use crate::support::{MAX_TTL, Rig, WITHIN, claim};

/// A node that votes, and whose code panics when it is asked for a lock.
#[derive(Debug)]
struct Panics(MemoryNode);

impl QuorumNode for Panics {
    fn address(&self) -> &str {
        self.0.address()
    }

    fn listen(&self, sink: EventSink) {
        self.0.listen(sink);
    }
}

impl BlockingQuorumNode for Panics {
    fn for_keeper(&self) -> Self {
        Self(self.0.clone())
    }

    fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError> {
        assert!(!matches!(ask, Ask::Acquire { .. } | Ask::Fence { .. }), "on command");
        BlockingQuorumNode::ask(&self.0, ask, within)
    }
}

#[test]
fn nodes_whose_threads_panicked_keep_no_caller_waiting() {
    let rig = Rig::founded(3);
    let nodes = rig.nodes.iter().cloned().map(Panics).collect();
    let client = Redlock::on_clock(nodes, Ttl::new(MAX_TTL).unwrap(), Arc::new(rig.clock.clone())).unwrap();
    client.pass(Purpose::Watch, WITHIN).unwrap();
    let begun = Instant::now();
    // The first ends the threads, the second finds that they have ended.
    for owner in [1, 2] {
        let error = client.acquire(&claim(owner), Duration::from_secs(60)).unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown, "{error}");
    }
    client.flush(Duration::from_secs(60));
    drop(client);
    assert!(begun.elapsed() < Duration::from_secs(30), "somebody waited for an answer");
}
