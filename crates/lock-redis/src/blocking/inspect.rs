//! Listing and revoking locks.

use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::{BackendError, BlockingInspect, FencingToken, LockName, Operation};

use super::Redis;
use crate::failure::Failure;
use crate::look::{Look, Revocation, SCANS_PER_PAGE, Scan, WhoHolds, entries};
use crate::span::Span;
use crate::wire::LEASES_PER_SCRIPT;

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
            let (keys, next) = self.answer(&scan, span).map_err(failed)?;
            for keys in keys.chunks(LEASES_PER_SCRIPT) {
                let seen = self.answer(&Look(keys), span).map_err(failed)?;
                page.entries.extend(entries(&self.wire, keys, seen));
            }
            page.next = next;
            if page.next.is_none() || !page.entries.is_empty() {
                break;
            }
        }
        Ok(page)
    }

    fn revoke(&self, name: &LockName, token: FencingToken, within: Duration) -> Result<Revoked, BackendError> {
        self.ask(Revocation(name, token), within)
    }
}
