//! Listing and revoking locks.

use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::{BackendError, BlockingInspect, FencingToken, LockName, Note, Operation};

use super::Redis;
use crate::failure::Failure;
use crate::look::{SCANS_PER_PAGE, Scan, WhoHolds, entries, next_looks};
use crate::revocation::{Revocation, RevokedBy};
use crate::span::Span;

impl BlockingInspect for Redis {
    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(WhoHolds(name), within)
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let span = Span::from_now(within);
        let failed = |failure: Failure| failure.into_error(Operation::Inspect);
        let mut page = Page { entries: Vec::new(), next: query.cursor.clone() };
        for _ in 0..SCANS_PER_PAGE {
            let scan = Scan { query, cursor: page.next.as_ref() };
            let (names, next) = self.answer(&scan, span).map_err(failed)?;
            let mut rest = names.as_slice();
            while !rest.is_empty() {
                let looks: Vec<_> = next_looks(&self.wire, rest).collect();
                for (look, seen) in looks.iter().zip(self.answer_each(&looks, span)) {
                    let seen = seen.map_err(failed)?;
                    rest = rest.get(seen.len()..).unwrap_or_default();
                    page.entries.extend(entries(look.0, seen));
                }
            }
            page.next = next;
            if page.next.is_none() || !page.entries.is_empty() {
                break;
            }
        }
        Ok(page)
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.ask(Revocation { name, token, by }, within)
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.ask(RevokedBy(name, highest), within)
    }
}
