//! Where connections for requests come from.

use std::sync::Arc;

use lock_core::BackendError;
use lock_sql::Pool;

use crate::connect::Connector;
use crate::error;
use crate::held::Origin;

/// Where connections for requests come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// The client opens them.
    Own,
    /// A pool of the user's lends them.
    Pool(mysql_async::Pool),
    /// The same, for threads.
    #[cfg(feature = "blocking")]
    Threads(mysql::Pool),
}

impl Source {
    /// A connection, from the user's pool or from the client's own.
    pub(crate) async fn lend(&self, own: &Arc<Pool<Connector>>) -> Result<Origin, BackendError> {
        match self {
            Self::Own => own.lend().await.map(|lent| Origin::Own(Some(lent))),
            Self::Pool(pool) => {
                own.prepare().await?;
                Ok(Origin::Pool(Some(pool.get_conn().await.map_err(|failure| error::of_pool(&failure))?)))
            }
            #[cfg(feature = "blocking")]
            Self::Threads(pool) => {
                own.prepare().await?;
                let pool = pool.clone();
                let lent = tokio::task::spawn_blocking(move || pool.get_conn())
                    .await
                    .map_err(|failure| error::of_pool(&failure))?;
                Ok(Origin::Threads(Some(lent.map_err(|failure| error::of_pool(&failure))?)))
            }
        }
    }
}
