//! What only the backend for tokio has: futures that are dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::{AsyncBackend, Operation, Ttl};
use lock_memory::faults::Faulty;
use lock_redlock::nonblocking::Redlock;
use lock_redlock::quorum::Purpose;

use crate::support::{MAX_TTL, Rig, WITHIN};

#[tokio::test]
async fn dropped_requests_are_not_waited_for() {
    let rig = Rig::founded(3);
    let nodes = rig.nodes.iter().zip(&rig.faults).map(|(node, faults)| Faulty::new(node.clone(), faults)).collect();
    let client = Redlock::on_clock(nodes, Ttl::new(MAX_TTL).unwrap(), Arc::new(rig.clock.clone())).unwrap();
    client.pass(Purpose::Watch, WITHIN).await.unwrap();
    rig.faults[0].hold(Operation::Inspect);
    let dropped = tokio::time::timeout(Duration::from_millis(50), client.pass(Purpose::Look, WITHIN)).await;
    assert!(dropped.is_err(), "it waits for the node");
    rig.faults[0].let_go(Operation::Inspect);
    client.pass(Purpose::Look, WITHIN).await.unwrap();
    let begun = Instant::now();
    client.flush(Duration::from_secs(30)).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "nothing is under way any more");
}
