//! The page and its events over HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{Stream, unfold};
use tokio::sync::watch;

use crate::guard::{Hosts, guard};
use crate::html::{Nonce, page, policy};
use crate::pages::Pages;

pub(crate) fn router(pages: Pages, hosts: Arc<Hosts>) -> Router {
    let routes = Router::new().route("/", get(show)).route("/events", get(events));
    routes.fallback(|| async { StatusCode::NOT_FOUND }).layer(from_fn_with_state(hosts, guard)).with_state(pages)
}

async fn show() -> Result<Response, StatusCode> {
    let nonce = Nonce::fresh().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy(&nonce)),
    ];
    Ok((headers, page(&nonce)).into_response())
}

async fn events(State(pages): State<Pages>) -> Response {
    match pages.open() {
        Some(page) => Sse::new(told(page)).keep_alive(KeepAlive::default()).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open; close one\n").into_response(),
    }
}

/// Each text that is published. A slow page misses some.
fn told(page: watch::Receiver<Arc<str>>) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(page, |mut page| async {
        loop {
            page.changed().await.ok()?;
            let text = Arc::clone(&page.borrow_and_update());
            if !text.is_empty() {
                return Some((Ok(Event::default().data(text)), page));
            }
        }
    })
}
