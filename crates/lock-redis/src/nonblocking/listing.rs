//! Listing locks.

use futures_util::future::try_join_all;
use lock_core::inspect::{Page, Query};

use super::source::Source;
use crate::failure::Failure;
use crate::requests::look::{SCANS_PER_PAGE, Scan, entries, next_looks};
use crate::servers::Server;
use crate::span::Span;

impl Server<Source> {
    /// Some of the held locks that match.
    pub(super) async fn page(&self, query: &Query, span: Span) -> Result<Page, Failure> {
        let mut page = Page { entries: Vec::new(), next: query.cursor.clone() };
        for _ in 0..SCANS_PER_PAGE {
            let scan = Scan { query, cursor: page.next.as_ref() };
            let (names, next) = self.answer(&scan, span).await?;
            let mut rest = names.as_slice();
            while !rest.is_empty() {
                let looks = next_looks(&self.wire, rest).map(async |look| {
                    let seen = self.answer(&look, span).await?;
                    Ok::<_, Failure>((seen.len(), entries(look.0, seen)))
                });
                for (looked_at, found) in try_join_all(looks).await? {
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
}
