//! The order of requests to a node, of which a few leave at once and many together.

use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::node::{Ask, AsyncQuorumNode, Told};
use lock_core::{BackendError, Certainty, Released};
use lock_redis::RedisConfig;
use lock_redis::node::nonblocking::RedisNode;
use tokio::runtime::Builder;

use super::{ADDRESS, EPOCH, Voter, acquire, on_tokio};
use crate::support::{SOON, claim, release_of};

/// With fewer, none overtakes another although nothing hinders it.
const PAIRS: usize = 10_000;
/// How many requests are in flight at most: sometimes enough to leave at once, sometimes too many.
const IN_FLIGHT_MAX: usize = 9;

#[test]
fn no_release_overtakes_its_claim() {
    let voter = Voter::start(on_tokio);
    let node = RedisNode::new(&RedisConfig::from_url(&voter.server.url()).unwrap(), ADDRESS).unwrap();
    let ask = async |ask: Ask| node.ask(&ask, SOON).await;
    let asks = (0..PAIRS).flat_map(|pair| {
        let claim = claim(&format!("lock {pair}"));
        let release = release_of(&claim, Certainty::Answered);
        [acquire(&claim, 1, EPOCH), Ask::Release(release.into())]
    });
    let in_order = |told: Result<Told, BackendError>| {
        matches!(told, Ok(Told::Granted { .. } | Told::Released(Released::Released)))
    };
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
        let mut in_flight = FuturesUnordered::new();
        for next in asks {
            in_flight.push(ask(next));
            while in_flight.len() > fastrand::usize(..IN_FLIGHT_MAX) {
                let told = in_flight.next().await.unwrap();
                assert!(in_order(told));
            }
        }
        while let Some(told) = in_flight.next().await {
            assert!(in_order(told));
        }
    });
}
