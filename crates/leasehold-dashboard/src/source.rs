//! Where the locks are read.

use leasehold::backend::EntriesEnd;
use leasehold::clock::{Clock, HostClock};
use leasehold::inspect::{Listing, Note};
use leasehold::{BackendError, Client, FencingToken, LockName};

use crate::listing::{WITHIN, list};

/// The locks of one store that match a glob.
#[derive(Debug)]
pub(crate) struct Source {
    client: Client,
    pub(crate) pattern: String,
    #[cfg(feature = "redlock")]
    pub(crate) nodes: Option<crate::nodes::Nodes>,
}

impl Source {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            pattern: "*".to_owned(),
            #[cfg(feature = "redlock")]
            nodes: None,
        }
    }

    /// All locks that match.
    pub(crate) async fn list(&self) -> Result<Listing, BackendError> {
        let asked = HostClock.now();
        let entries = list(&self.client, &self.pattern).await?;
        Ok(Listing::new(asked, HostClock.now(), entries))
    }

    /// Who ended the lease whose highest token this is, if somebody did.
    pub(crate) async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
    ) -> Result<Option<Note>, BackendError> {
        match self.client.inspect() {
            Some(store) => store.revoked_by(name, highest, WITHIN).await,
            None => Ok(None),
        }
    }

    /// What is shown in place of the remaining time of a lease that has none.
    pub(crate) fn endless(&self) -> &'static str {
        match self.client.capabilities().entries_end {
            EntriesEnd::WithTtl => "never expires",
            EntriesEnd::WithSession => "ends with its session",
        }
    }
}
