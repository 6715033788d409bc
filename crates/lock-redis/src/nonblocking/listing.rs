//! Listing the locks of one server. Compiled for threads as well.

use lock_core::inspect::{Page, Query};

use super::{Connections, both};
use crate::failure::Failure;
use crate::requests::look::{SCANS_PER_PAGE, Scan, entries, next_looks};
use crate::servers::Server;
use crate::span::Span;

#[both]
impl Server<Connections> {
    /// Some of the held locks that match.
    pub(super) async fn page(&self, query: &Query, span: Span) -> Result<Page, Failure> {
        let mut page = Page { entries: Vec::new(), next: query.cursor.clone() };
        for _ in 0..SCANS_PER_PAGE {
            let scan = Scan { query, cursor: page.next.as_ref() };
            let (names, next) = self.answer(&scan, span).await?;
            let mut rest = names.as_slice();
            while !rest.is_empty() {
                let looks: Vec<_> = next_looks(&self.wire, rest).collect();
                for (look, seen) in looks.iter().zip(self.answer_each(&looks, span).await) {
                    let seen = seen?;
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
}
