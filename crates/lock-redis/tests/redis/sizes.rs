//! What a request that waits for its answer keeps in memory.

use std::mem::size_of_val;

use lock_core::node::{Ask, AsyncQuorumNode};
use lock_core::{AsyncBackend, Certainty};
use lock_redis::node::nonblocking::RedisNode;
use lock_redis::{RedisConfig, nonblocking};

use crate::support::{SOON, claim, release_of};

const URL: &str = "redis://127.0.0.1:1";

/// Measured: 640 bytes for a verb, 232 for renewals, 448 for a request to a node. A variant that is not boxed (a pool's, or a
/// retry) costs at least 500 more.
const OF_A_VERB: usize = 1_000;
const OF_RENEWALS: usize = 1_100;
const OF_A_NODE: usize = 700;

/// Nothing is sent here: these futures are not polled.
#[test]
fn a_request_in_flight_is_small() {
    let redis = nonblocking::Redis::from(redis::Client::open(URL).unwrap());
    let claim = claim("small");
    let request = release_of(&claim, Certainty::Answered);
    let sizes = [
        ("acquire", size_of_val(&*redis.acquire(&claim, SOON)), OF_A_VERB),
        ("release", size_of_val(&*redis.release(&request, SOON)), OF_A_VERB),
        ("renew", size_of_val(&*redis.renew(&[], SOON)), OF_RENEWALS),
    ];
    for (verb, size, limit) in sizes {
        assert!(size <= limit, "{verb}: {size} bytes");
    }
}

/// The same for a node of a quorum.
#[test]
fn a_request_to_a_node_is_small() {
    let node = RedisNode::new(&RedisConfig::from_url(URL).unwrap(), "n").unwrap();
    let size = size_of_val(&node.ask(&Ask::Look, SOON));
    assert!(size <= OF_A_NODE, "{size} bytes");
}
