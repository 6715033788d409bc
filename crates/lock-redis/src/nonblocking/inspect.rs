//! Listing and revoking locks.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::{AsyncInspect, BackendError, FencingToken, LockName, Note, Operation};

use super::Redis;
use crate::failure::Failure;
use crate::look::{SCANS_PER_PAGE, Scan, WhoHolds, entries, next_looks};
use crate::revocation::{Revocation, RevokedBy};
use crate::span::Span;

#[async_trait]
impl AsyncInspect for Redis {
    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(WhoHolds(name), within).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let span = Span::from_now(within);
        let failed = |failure: Failure| failure.into_error(Operation::Inspect);
        let mut page = Page { entries: Vec::new(), next: query.cursor.clone() };
        for _ in 0..SCANS_PER_PAGE {
            let scan = Scan { query, cursor: page.next.as_ref() };
            let (names, next) = self.answer(&scan, span).await.map_err(failed)?;
            let mut rest = names.as_slice();
            while !rest.is_empty() {
                let looks = next_looks(&self.wire, rest).map(async |look| {
                    let seen = self.answer(&look, span).await?;
                    Ok((seen.len(), entries(look.0, seen)))
                });
                for (looked_at, found) in try_join_all(looks).await.map_err(failed)? {
                    rest = rest.get(looked_at..).unwrap_or_default();
                    page.entries.extend(found);
                }
            }
            page.next = next;
            if page.next.is_none() || !page.entries.is_empty() {
                break;
            }
        }
        Ok(page)
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.ask(Revocation { name, token, by }, within).await
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.ask(RevokedBy(name, highest), within).await
    }
}
