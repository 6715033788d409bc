//! Where the locks are read.

#[cfg(feature = "redlock")]
use std::sync::Arc;
use std::time::Duration;

use leasehold::backend::{Ability, AsyncBackend, EntriesEnd};
use leasehold::inspect::watch::Change;
use leasehold::inspect::{Listing, Query, Watch, list_all, next_changes};
#[cfg(feature = "redlock")]
use leasehold::redlock::{Purpose, Report, nonblocking::Quorum};
use leasehold::{BackendError, Client};

/// How long a store may take for each request.
const WITHIN: Duration = Duration::from_secs(1);

/// The locks of one store that match a glob.
#[derive(Debug)]
pub(crate) struct Source {
    client: Client,
    pub(crate) pattern: String,
    #[cfg(feature = "redlock")]
    pub(crate) quorum: Option<Arc<Quorum>>,
}

impl Source {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            pattern: "*".to_owned(),
            #[cfg(feature = "redlock")]
            quorum: None,
        }
    }

    fn store(&self) -> Result<&dyn AsyncBackend, BackendError> {
        self.client.inspect().ok_or_else(|| self.client.capabilities().unable(Ability::Inspect))
    }

    /// All locks that match.
    pub(crate) async fn list(&self) -> Result<Listing, BackendError> {
        list_all(self.store()?, Query::matching(&self.pattern), WITHIN).await
    }

    /// Lists the locks again, and says what has happened since the last listing of this watch.
    pub(crate) async fn changes(&self, watch: &mut Watch) -> Result<Vec<Change>, BackendError> {
        let listing = self.list().await.inspect_err(|_| watch.miss())?;
        Ok(next_changes(self.store()?, watch, listing, WITHIN).await)
    }

    /// Whether the nodes of a quorum vote; `None` for another store. This also refreshes which nodes count when the locks of the
    /// quorum are listed. Nothing is written to them.
    #[cfg(feature = "redlock")]
    pub(crate) async fn nodes(&self) -> Option<Result<Report, BackendError>> {
        Some(self.quorum.as_ref()?.pass(Purpose::Look, WITHIN).await)
    }

    /// What is shown in place of the remaining time of a lease that has none.
    pub(crate) fn endless(&self) -> &'static str {
        match self.client.capabilities().entries_end {
            EntriesEnd::WithTtl => "never expires",
            EntriesEnd::WithSession => "ends with its session",
        }
    }
}
