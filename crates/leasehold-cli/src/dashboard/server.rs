//! The page and its events over HTTP.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{Stream, unfold};
use tokio::sync::watch;

use super::guard::guard;
use super::html::{Nonce, page, policy};

/// How many pages may be open at the same time. Chosen: more than one person opens.
const PAGES_MAX: usize = 32;

/// Where pages get what they show. An empty text says that nobody has looked yet.
#[derive(Clone)]
pub(super) struct Pages {
    told: Arc<watch::Sender<Arc<str>>>,
    opened: SyncSender<()>,
}

/// The other end: where the reader of the store says what it found.
pub(super) struct Feed {
    told: Arc<watch::Sender<Arc<str>>>,
    opened: Receiver<()>,
}

impl Pages {
    pub(super) fn with_feed() -> (Self, Feed) {
        let told = Arc::new(watch::Sender::new(Arc::default()));
        let (tell, opened) = sync_channel(1);
        (Self { told: Arc::clone(&told), opened: tell }, Feed { told, opened })
    }

    /// What one more page is told: what there is now and then what is new; `None` if too many are open.
    fn open(&self) -> Option<watch::Receiver<Arc<str>>> {
        if self.told.receiver_count() >= PAGES_MAX {
            return None;
        }
        let mut page = self.told.subscribe();
        page.mark_changed();
        // If it is full, the reader is about to look anyway.
        let _ = self.opened.try_send(());
        Some(page)
    }
}

impl Feed {
    /// Whether a page is open.
    pub(super) fn is_read(&self) -> bool {
        self.told.receiver_count() > 0
    }

    /// Waits for a page, which will not see what was told before; `false` if there will be none.
    pub(super) fn await_reader(&self) -> bool {
        self.told.send_replace(Arc::default());
        self.opened.recv().is_ok()
    }

    pub(super) fn tell(&self, text: String) {
        self.told.send_replace(text.into());
    }

    /// Waits until it is time to look again, or a page is opened.
    pub(super) fn pause(&self, time: Duration) {
        let _ = self.opened.recv_timeout(time);
    }
}

/// Answers requests, without end.
pub(super) fn serve(listener: TcpListener, pages: Pages) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, router(pages)).await
    })
}

fn router(pages: Pages) -> Router {
    let routes = Router::new().route("/", get(show)).route("/events", get(events));
    routes.fallback(|| async { StatusCode::NOT_FOUND }).layer(from_fn(guard)).with_state(pages)
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

/// Each text that is told. A page that is slow misses some.
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
