//! Listing locks. Compiled for threads as well.

use std::sync::Arc;

use lock_core::inspect::{Page, Query};

use super::{Connections, Redis, both};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::requests::look::{SCANS_PER_PAGE, Scan, entries, next_looks};
use crate::servers::listing::{after, stop};
use crate::servers::{Server, Servers};
use crate::span::Span;

/// There is nothing more to list.
const EMPTY: Page = Page { entries: Vec::new(), next: None };

#[both]
impl Redis {
    /// Some of the held locks that match: in a cluster, of one primary.
    pub(super) async fn page(&self, query: &Query, span: Span) -> Result<Page, Failure> {
        let many = match &self.servers {
            Servers::Many(many) if many.deployment() == Deployment::Cluster => many,
            Servers::One(server) => return server.page(query, span).await,
            Servers::Many(many) => {
                let Some((server, _)) = many.each()?.pop() else { return Ok(EMPTY) };
                return server.page(query, span).await;
            }
        };
        let primaries = many.directory.primaries();
        let Some((address, cursor)) = stop(&primaries, query.cursor.as_ref())? else { return Ok(EMPTY) };
        let mut query = query.clone();
        query.cursor = cursor;
        let page = many.node(&address)?.page(&query, span).await;
        let page = page.inspect_err(|failure| Arc::clone(&many.directory).doubt(failure))?;
        Ok(Page { next: after(&primaries, &address, page.next), ..page })
    }
}

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
