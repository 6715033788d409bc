//! Where connections for requests come from.

use std::sync::Arc;

use lock_core::BackendError;
use lock_sql::Pool;

use crate::connect::Connector;
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
use crate::error;
#[cfg(feature = "r2d2")]
use crate::held::OnThread;
use crate::held::Origin;

/// Where connections for requests come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// The client opens them.
    Own,
    /// A pool of the user's lends them.
    #[cfg(feature = "deadpool")]
    Deadpool(deadpool_postgres::Pool),
    /// The same, for threads.
    #[cfg(feature = "r2d2")]
    R2d2(Arc<dyn Fn() -> Result<OnThread, r2d2::Error> + Send + Sync>),
}

impl Source {
    /// A connection, from the user's pool or from the client's own.
    pub(crate) async fn lend(&self, own: &Arc<Pool<Connector>>) -> Result<Origin, BackendError> {
        match self {
            Self::Own => own.lend().await.map(Origin::Own),
            #[cfg(feature = "deadpool")]
            Self::Deadpool(pool) => {
                own.prepare().await?;
                Ok(Origin::Deadpool(pool.get().await.map_err(|failure| error::of_pool(&failure))?))
            }
            #[cfg(feature = "r2d2")]
            Self::R2d2(get) => {
                own.prepare().await?;
                let get = Arc::clone(get);
                let lent =
                    tokio::task::spawn_blocking(move || get()).await.map_err(|failure| error::of_pool(&failure))?;
                Ok(Origin::R2d2(Some(lent.map_err(|failure| error::of_pool(&failure))?)))
            }
        }
    }
}
