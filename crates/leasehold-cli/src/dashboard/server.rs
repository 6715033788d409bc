//! The page and its events over HTTP.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use futures_util::stream::{Stream, unfold};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;

use super::guard::guard;
use super::html::{Nonce, page, policy};

/// How many pages may be open at the same time. Chosen: more than one person opens.
const PAGES_MAX: usize = 32;
/// How many connections are served at the same time; requests on others wait. Chosen: twice as many as pages, and far fewer than a
/// process may have.
const CONNECTIONS_MAX: usize = 64;
/// How many connections may have sent no request yet. With one more, the oldest is closed, so that silent clients keep nobody out.
const SILENT_MAX: usize = 64;
/// A connection on which no request arrives for this long is closed.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

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

/// A connection, and the place that it gets with its first request.
struct Newcomer {
    place: Weak<OnceLock<OwnedSemaphorePermit>>,
    task: AbortHandle,
}

impl Newcomer {
    fn is_silent(&self) -> bool {
        self.place.upgrade().is_some_and(|place| place.get().is_none())
    }
}

/// The connections that have no place yet, the oldest first.
#[derive(Default)]
struct Silent(VecDeque<Newcomer>);

impl Silent {
    fn add(&mut self, newcomer: Newcomer) {
        self.0.retain(Newcomer::is_silent);
        self.0.push_back(newcomer);
        if self.0.len() > SILENT_MAX
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.task.abort();
        }
    }
}

/// Answers requests, without end.
pub(super) fn serve(listener: TcpListener, pages: Pages) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut listener = tokio::net::TcpListener::from_std(listener)?;
        let service = TowerToHyperService::new(router(pages));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WITHIN);
        let (places, mut silent) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Silent::default());
        loop {
            let (stream, _) = Listener::accept(&mut listener).await;
            let place = Arc::new(OnceLock::new());
            let (places, service, own) = (Arc::clone(&places), service.clone(), Arc::clone(&place));
            let served = service_fn(move |request| {
                let (places, service, place) = (Arc::clone(&places), service.clone(), Arc::clone(&own));
                async move {
                    if place.get().is_none()
                        && let Ok(free) = places.acquire_owned().await
                    {
                        _ = place.set(free);
                    }
                    service.call(request).await
                }
            });
            let connection = http.serve_connection(TokioIo::new(stream), served);
            // A client that goes away in the middle is nothing to report.
            let task = tokio::spawn(async move { _ = connection.await });
            silent.add(Newcomer { place: Arc::downgrade(&place), task: task.abort_handle() });
        }
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
