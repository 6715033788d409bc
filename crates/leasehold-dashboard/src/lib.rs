//! A live page of the locks of a store: who holds what and why, who waits, and what has just happened.
//!
//! A service mounts it on a port of its own for administrators; `leasehold dashboard` serves the same page.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_dashboard::Dashboard;
//! use tokio::net::TcpListener;
//!
//! let locks = leasehold::connect("memory:").await?; // the client that the service has anyway
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let page = Dashboard::new(locks).store("invoices").router();
//! let admin = tokio::spawn(async move { axum::serve(listener, page).await });
//! # admin.abort();
//! # Ok(())
//! # }
//! ```
//!
//! # The page
//!
//! Each line is a lease: its holder, reason, age, token, and the time until it ends unless its holder renews it. A bar appears when less
//! than half of the lease is left, and turns amber at a third, which does not happen while renewals are in time. A store does not tell the
//! length of a whole lease, so the length of a full bar is an estimate.
//!
//! - Locks with waiters come first. Buttons put the oldest leases, late renewals, or the names in their order first instead.
//! - A click, or `Enter`, opens a row: all holders, all waiters, and for each lease the command that ends it, to be copied into a shell.
//! - The filter takes words of a name, a holder, a reason, a kind, or a token; `=NAME` is exactly one lock. Filter and order are in the
//!   address, so that a link or a reload keeps them.
//! - The history has the events of the last 15 minutes, at most 200, since the page was opened. It misses anything that starts and ends
//!   between two reads.
//! - `/` leads to the filter and `Esc` clears it, `j` and `k` lead to the next and the previous lock, and `t` switches between light and dark.
//! - Invisible characters, and those that change the direction of text, are written as `\u{202e}`.
//! - At most 2,000 locks are shown, those with the most waiters. Set a [`pattern`](Dashboard::pattern) to see others.
//! - While the store is unreachable, the page says so, shows the last state, and keeps retrying.
//! - For a quorum, it shows the locks that a majority of the nodes has, and of each node whether it votes, or how long it still abstains.
//!
//! # Access
//!
//! The page is read-only: the router answers only `GET`. It has no login, so **every client that reaches the port can read the page**. Bind
//! it to a loopback address, or to one that only administrators reach, and never merge it into a router for the public.
//!
//! Other sites cannot read it through an administrator's browser: the router answers only under a name of this machine (`localhost`, a
//! loopback address) or one that was [allowed](Dashboard::allow_host), and not on behalf of a page of another site. A page that was opened
//! from a link on another site says so; open its address in a new tab. The page itself loads nothing, and its Content-Security-Policy lets it
//! run its own script alone.
//!
//! # Cost
//!
//! One task reads the store for all pages, [`every`](Dashboard::every) so often, and only while a page is open and visible. At
//! most 32 pages may be open.
//!
//! Reading order: `reader` (looks at the store while a page is open) · `source` (what it reads: the locks, and the nodes of a quorum) · `snapshot`
//! (the contents of a page) · `pages` (how they are published) · `server` (the page and its events) · `guard` (which requests are answered) · `connections`
//! (of a port of its own) · `html` and `page/` (what runs in the browser).

mod connections;
mod guard;
mod html;
mod pages;
mod reader;
mod server;
mod snapshot;
mod source;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
#[cfg(feature = "redlock")]
use leasehold::redlock::nonblocking::Quorum;
use leasehold::{BackendError, Client};

use self::guard::Hosts;
use self::pages::Pages;
use self::reader::{OnTrouble, Reader};
use self::source::Source;

/// How often the store is read unless set otherwise. Chosen: a person sees what happens, and a store does not notice.
const EVERY: Duration = Duration::from_secs(1);

/// The shortest pause that can be set. Chosen: a page does not change faster than a person sees.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// A live page of the locks of one store. Nothing is read before a page is open.
#[derive(Debug)]
#[must_use = "a dashboard shows nothing until its router is served"]
pub struct Dashboard {
    source: Source,
    store: String,
    every: Duration,
    hosts: Hosts,
    on_trouble: OnTrouble,
}

impl Dashboard {
    /// A page of all locks of this client's store.
    pub fn new(client: Client) -> Self {
        Self {
            source: Source::new(client),
            store: String::new(),
            every: EVERY,
            hosts: Hosts::default(),
            on_trouble: OnTrouble::default(),
        }
    }

    /// What the page calls the store, such as the name of the service. Everybody who can read the page can read it.
    pub fn store(mut self, name: impl Into<String>) -> Self {
        self.store = name.into();
        self
    }

    /// Shows only the locks whose names match: `*` matches any text, `?` one character.
    pub fn pattern(mut self, glob: impl Into<String>) -> Self {
        self.source.pattern = glob.into();
        self
    }

    /// Reads the store this often while a page is open; by default each second, and every 100 ms at most. A lease that is about to end is
    /// looked at sooner.
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = pause.max(EVERY_MIN);
        self
    }

    /// Also answers under this name or address (without a port), such as that of the proxy in front of the page.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.allow(host.into());
        self
    }

    /// Calls this when the store cannot be read any more, with the reason, and with `None` when it can be read again. It must not block.
    pub fn on_trouble(mut self, hear: impl Fn(Option<&str>) + Send + Sync + 'static) -> Self {
        self.on_trouble = OnTrouble::new(hear);
        self
    }

    /// Also shows the nodes of this quorum. Let it be the very one on which the client is made: nodes that turn out to belong to another
    /// deployment are then left out when locks are listed.
    #[cfg(feature = "redlock")]
    pub fn quorum(mut self, quorum: Arc<Quorum>) -> Self {
        self.source.quorum = Some(quorum);
        self
    }

    /// Reads the store once, so that a service can refuse to start. The router shows the error of a store on the page, and reads it again.
    ///
    /// # Errors
    /// Those of the store: of kind `Unsupported` if it cannot list its locks.
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn check(&self) -> Result<(), BackendError> {
        self.source.list().await.map(drop)
    }

    /// The page as a router: at its root, or where it is nested. Nest it with [`Router::nest_service`]: at `/locks`, it then answers at `/locks` and at
    /// `/locks/`. With [`Router::nest`], axum has no route for `/locks/`.
    ///
    /// An open page is a response without end. So a server that shuts down gracefully waits for it: drop the server instead.
    ///
    /// # Panics
    /// Outside a tokio runtime, on which the store is read until the router and its clones are dropped.
    #[track_caller]
    pub fn router(self) -> Router {
        let (pages, feed) = Pages::with_feed();
        tokio::spawn(Reader::new(self.source, self.store, self.every, self.on_trouble).feed(feed));
        server::router(pages, Arc::new(self.hosts))
    }

    /// Serves the page alone on this port, without end. Clients that keep connections open without a request keep nobody else out.
    ///
    /// # Errors
    /// If the port cannot be served.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the port is closed, and pages notice.
    pub async fn serve(self, listener: TcpListener) -> io::Result<()> {
        connections::serve(listener, self.router()).await
    }
}
