//! What only the backend for tokio has: futures that are dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::{
    Answer, AsyncBackend, Certainty, Claim, ErrorKind, Evidence, Operation, ReleaseRequest, Released, Ttl,
};
use lock_memory::faults::{Asked, Fault, Faulty};
use lock_redlock::nonblocking::Redlock;
use lock_redlock::quorum::Purpose;
use tokio::runtime::{Builder, Runtime};

use crate::support::{MAX_TTL, Node, Rig, WITHIN, claim};

async fn connected(rig: &Rig) -> Arc<Redlock<Node>> {
    let nodes = rig.nodes.iter().zip(&rig.faults).map(|(node, faults)| Faulty::new(node.clone(), faults)).collect();
    let client = Redlock::on_clock(nodes, Ttl::new(MAX_TTL).unwrap(), Arc::new(rig.clock.clone())).unwrap();
    client.pass(Purpose::Watch, WITHIN).await.unwrap();
    Arc::new(client)
}

fn release_of(owner: u8) -> ReleaseRequest {
    let Claim { name, owner, terms, .. } = claim(owner);
    ReleaseRequest { name, owner, terms, certainty: Certainty::Answered, keep: None, evidence: Evidence::Nothing }
}

/// A lock that two of three nodes granted. The third runs the claim, and its answer is held.
async fn granted_by_two(rig: &Rig) -> Arc<Redlock<Node>> {
    let client = connected(rig).await;
    rig.faults[2].hold(Operation::Acquire);
    let answer = client.acquire(&claim(1), WITHIN).await.unwrap();
    assert!(matches!(answer, Answer::Granted { .. }), "{answer:?}");
    client
}

/// Measured: 488 bytes. A client keeps one of these for each request, besides those to the nodes.
#[tokio::test]
async fn a_request_in_flight_is_small() {
    let rig = Rig::in_use(3);
    let client = connected(&rig).await;
    let size = size_of_val(&*client.acquire(&claim(1), WITHIN));
    assert!(size <= 700, "{size} bytes");
}

/// The verdict comes with the answer to the claim, which another task waits for.
#[tokio::test]
async fn a_release_is_told_when_the_node_that_it_needs_answers_the_claim() {
    let rig = Rig::in_use(3);
    let client = granted_by_two(&rig).await;
    rig.faults[0].fail_all(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    let release = tokio::spawn({
        let client = Arc::clone(&client);
        async move { client.release(&release_of(1), WITHIN).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!release.is_finished(), "one node is no majority");
    rig.faults[2].let_go(Operation::Acquire);
    let released = tokio::time::timeout(WITHIN, release).await.expect("it was never told").unwrap();
    assert_eq!(released.unwrap(), Released::Released);
}

#[tokio::test]
async fn a_flush_does_not_wait_for_the_claim() {
    let rig = Rig::in_use(3);
    let client = granted_by_two(&rig).await;
    client.release(&release_of(1), WITHIN).await.unwrap();
    assert_eq!(rig.asked(&Asked::Release(claim(1).owner)), [0, 1]);
    client.flush(Duration::from_millis(200)).await;
    assert_eq!(rig.asked(&Asked::Release(claim(1).owner)), [0, 1, 2]);
    assert!(is_free(&rig));
    rig.faults[2].let_go(Operation::Acquire);
}

#[tokio::test]
async fn dropped_requests_are_not_waited_for() {
    let rig = Rig::founded(3);
    let client = connected(&rig).await;
    rig.faults[0].hold(Operation::Inspect);
    let dropped = tokio::time::timeout(Duration::from_millis(50), client.pass(Purpose::Look, WITHIN)).await;
    assert!(dropped.is_err(), "it waits for the node");
    rig.faults[0].let_go(Operation::Inspect);
    client.pass(Purpose::Look, WITHIN).await.unwrap();
    let begun = Instant::now();
    client.flush(Duration::from_secs(30)).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "nothing is in flight any more");
}

fn is_free(rig: &Rig) -> bool {
    let now = lock_host::Clock::now(&rig.clock);
    rig.nodes.iter().all(|node| node.store().holds(now).next().is_none())
}

/// A guard that ends, and then the runtime. The third node was slow, and nobody hears its answer to the claim any more.
fn end(runtime: Runtime, rig: &Rig, by_hand: bool) {
    let client = runtime.block_on(async {
        let backend = connected(rig).await;
        rig.faults[2].hold(Operation::Acquire);
        let client = lock_async::Client::new(backend).unwrap();
        let guard = client.mutex("a").acquire().await.unwrap();
        if by_hand {
            guard.release().await.unwrap();
        }
        client
    });
    drop(runtime);
    drop(client);
}

#[test]
fn a_runtime_that_ends_leaves_the_lock_free_at_all_nodes() {
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        for by_hand in [true, false] {
            let rig = Rig::in_use(3);
            end(builder.enable_all().build().unwrap(), &rig, by_hand);
            assert!(is_free(&rig), "released by hand: {by_hand}, {builder:?}");
        }
    }
}
