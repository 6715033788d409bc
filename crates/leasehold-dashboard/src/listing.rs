//! One listing of a store.

use std::time::Duration;

use leasehold::backend::Ability;
use leasehold::inspect::{Entry, Query};
use leasehold::{BackendError, Client};

/// How long a store may take for each request.
pub(crate) const WITHIN: Duration = Duration::from_secs(1);

/// All locks that match a glob.
pub(crate) async fn list(client: &Client, pattern: &str) -> Result<Vec<Entry>, BackendError> {
    let store = client.inspect().ok_or_else(|| client.capabilities().unable(Ability::Inspect))?;
    let (mut query, mut entries) = (Query::matching(pattern), Vec::new());
    loop {
        let page = store.list(&query, WITHIN).await?;
        entries.extend(page.entries);
        let Some(next) = page.next else { return Ok(entries) };
        query = query.after(next);
    }
}
