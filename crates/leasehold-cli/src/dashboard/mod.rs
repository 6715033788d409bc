//! `leasehold dashboard`: a live page of what is held, served to browsers of this machine.
//!
//! Reading order: `reader` (looks at the store while a page is open) · `snapshot` (what a page is told) · `server` (the page and its
//! events) · `guard` (which requests are answered) ·
//! `html` and `page/` (what runs in the browser).

mod guard;
mod html;
mod reader;
mod server;
mod snapshot;

use std::net::{SocketAddr, TcpListener};
use std::thread;

use serde::Serialize;

use self::reader::Reader;
use self::server::Pages;
use crate::args::DashboardArgs;
use crate::exit::{Exit, Failure};
use crate::report::{json, print};
use crate::store::Store;

/// Serves the page until a signal ends it.
pub(crate) fn dashboard(args: &DashboardArgs) -> Result<Exit, Failure> {
    let listener = listen(args.listen)?;
    let store = Store::choose(args.store.url.as_deref())?.shared()?;
    let reader = Reader::begin(&store, &args.pattern, args.every.every)?;
    let (pages, feed) = Pages::with_feed();
    let system = |error| Failure::system("cannot serve the page", error);
    thread::Builder::new().name("reader".to_owned()).spawn(|| reader.feed(feed)).map_err(system)?;
    announce(args, &listener)?;
    server::serve(listener, pages).map_err(system)?;
    Ok(Exit::Done)
}

/// Anybody who reaches the address can read the page, so it is one of this machine.
fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    if !address.ip().is_loopback() {
        let message = format!(
            "--listen {address} is not a loopback address, and the page has no login; listen on 127.0.0.1, and reach it from elsewhere \
             with: ssh -L {port}:127.0.0.1:{port} HOST",
            port = address.port()
        );
        return Err(Failure::new(Exit::Config, message));
    }
    TcpListener::bind(address).map_err(|error| {
        let message =
            format!("cannot listen on {address}: {error}; give another port, or --listen 127.0.0.1:0 for any free one");
        Failure::new(Exit::Usage, message)
    })
}

/// Where the page is, for scripts.
#[derive(Debug, Serialize)]
struct Announcement {
    url: String,
}

fn announce(args: &DashboardArgs, listener: &TcpListener) -> Result<Exit, Failure> {
    let address = listener.local_addr().map_err(|error| Failure::system("cannot serve the page", error))?;
    let url = format!("http://{address}/");
    print(&if args.json { json(&Announcement { url })? } else { format!("the page is at {url}   Ctrl-C ends this") })
}
