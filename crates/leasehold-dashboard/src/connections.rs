//! The connections of a port that serves the page alone.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

/// How many connections are served at the same time; requests on others wait. Chosen: twice as many as pages, and far fewer than a
/// process may have.
const CONNECTIONS_MAX: usize = 64;
/// How many connections may have sent no request yet. With one more, the oldest is closed, so that silent clients keep nobody out.
const SILENT_MAX: usize = 64;
/// A connection on which no request arrives for this long is closed.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

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

/// Answers requests, without end. Its connections are closed when it is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut listener = tokio::net::TcpListener::from_std(listener)?;
    let service = TowerToHyperService::new(router);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WITHIN);
    let (places, mut silent) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Silent::default());
    let mut served = JoinSet::new();
    loop {
        let (stream, _) = Listener::accept(&mut listener).await;
        while served.try_join_next().is_some() {}
        let place = Arc::new(OnceLock::new());
        let (places, service, own) = (Arc::clone(&places), service.clone(), Arc::clone(&place));
        let answer = service_fn(move |request| {
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
        let connection = http.serve_connection(TokioIo::new(stream), answer);
        // A client that goes away in the middle is nothing to report.
        let task = served.spawn(async move { _ = connection.await });
        silent.add(Newcomer { place: Arc::downgrade(&place), task });
    }
}
