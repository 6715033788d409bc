//! Requests that are under way together over one connection.

use std::collections::BTreeSet;
use std::sync::Arc;

use lock_core::{Answer, AsyncBackend, Claim};
use lock_redis::{RedisConfig, nonblocking};
use test_support::RedisServer;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::support::{SOON, claim};

const MANY: usize = 200;

fn claim_of(lock: usize) -> Claim {
    claim(&format!("lock {lock}"))
}

/// Every other lock is held, so that an answer that went to another request would show.
#[test]
fn each_has_its_own_answer() {
    let server = RedisServer::start();
    let config = RedisConfig::from_url(&server.url()).unwrap();
    Runtime::new().unwrap().block_on(async {
        let redis = Arc::new(nonblocking::Redis::connect(&config).await.unwrap());
        for lock in (0..MANY).step_by(2) {
            redis.acquire(&claim_of(lock), SOON).await.unwrap();
        }
        let mut requests = JoinSet::new();
        for lock in 0..MANY {
            let redis = Arc::clone(&redis);
            requests.spawn(async move { (lock, redis.acquire(&claim_of(lock), SOON).await.unwrap()) });
        }
        let mut tokens = BTreeSet::new();
        for (lock, answer) in requests.join_all().await {
            match &answer {
                Answer::Granted { lease, .. } if lock % 2 == 1 => _ = tokens.insert(lease.tokens),
                Answer::Busy { .. } if lock % 2 == 0 => {}
                Answer::Granted { .. } | Answer::Queued { .. } | Answer::Busy { .. } => {
                    panic!("lock {lock}: {answer:?}")
                }
            }
        }
        assert_eq!(tokens.len(), MANY / 2, "no two leases have the same token");
    });
}
