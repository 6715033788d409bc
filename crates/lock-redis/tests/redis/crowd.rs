//! A client whose requests are sent together.

use std::sync::Arc;

use lock_core::{Answer, AsyncBackend, BackendError, Certainty, Claim, Lease, ReleaseRequest, Released};
use lock_redis::{RedisConfig, nonblocking};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::support::{SOON, claim, granted, release_of};

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Acquire(Claim),
    Release(ReleaseRequest),
}

#[derive(Debug)]
pub(crate) enum Said {
    Acquired(Result<Answer, BackendError>),
    Released(Result<Released, BackendError>),
}

/// A client on one thread. Requests that are made at once wait together behind the first, which is sent immediately.
pub(crate) struct Crowd {
    pub(crate) runtime: Runtime,
    pub(crate) redis: Arc<nonblocking::Redis>,
}

impl Crowd {
    pub(crate) fn new(url: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let config = RedisConfig::from_url(url).unwrap();
        let redis = Arc::new(runtime.block_on(nonblocking::Redis::connect(&config)).unwrap());
        Self { runtime, redis }
    }

    /// Makes all requests at once, behind one that is sent alone.
    pub(crate) fn ask(&self, asks: Vec<Ask>) -> Vec<Said> {
        // Nothing of it stays: a tombstone would be looked for by all that follow.
        let alone = Ask::Release(release_of(&claim("alone"), Certainty::Answered));
        let mut said = self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for (index, ask) in [alone].into_iter().chain(asks).enumerate() {
                let redis = Arc::clone(&self.redis);
                let said = async move {
                    match ask {
                        Ask::Acquire(claim) => Said::Acquired(redis.acquire(&claim, SOON).await),
                        Ask::Release(request) => Said::Released(redis.release(&request, SOON).await),
                    }
                };
                tasks.spawn(async move { (index, said.await) });
            }
            tasks.join_all().await
        });
        said.sort_by_key(|(index, _)| *index);
        said.into_iter().skip(1).map(|(_, said)| said).collect()
    }

    pub(crate) fn acquire(&self, claims: &[Claim]) -> Vec<Result<Answer, BackendError>> {
        let said = self.ask(claims.iter().cloned().map(Ask::Acquire).collect());
        said.into_iter().map(acquired).collect()
    }

    pub(crate) fn release(&self, claims: &[Claim]) -> Vec<Result<Released, BackendError>> {
        let asks = claims.iter().map(|claim| Ask::Release(release_of(claim, Certainty::Answered)));
        self.ask(asks.collect()).into_iter().map(released).collect()
    }

    /// Takes all of these.
    pub(crate) fn take(&self, claims: &[Claim]) -> Vec<Lease> {
        self.acquire(claims).into_iter().map(granted).collect()
    }
}

pub(crate) fn acquired(said: Said) -> Result<Answer, BackendError> {
    match said {
        Said::Acquired(answer) => answer,
        Said::Released(answer) => panic!("a claim was answered {answer:?}"),
    }
}

pub(crate) fn released(said: Said) -> Result<Released, BackendError> {
    match said {
        Said::Released(answer) => answer,
        Said::Acquired(answer) => panic!("a release was answered {answer:?}"),
    }
}
