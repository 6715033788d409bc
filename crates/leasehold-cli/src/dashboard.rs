//! `leasehold dashboard`: a live page of what is held, served to browsers of this machine.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use leasehold::{BackendConfig, Client, connect_to, redlock};
use leasehold_dashboard::Dashboard;
use serde_json::json;
use tokio::runtime;

use crate::args::DashboardArgs;
use crate::exit::{Exit, Failure};
use crate::quorum::failure;
use crate::report::{json, print, say_warning};
use crate::store::Store;

/// Serves the page until a signal ends it.
pub(crate) fn dashboard(args: &DashboardArgs) -> Result<Exit, Failure> {
    let listener = listen(args.listen)?;
    let store = Store::choose(args.store.url.as_deref())?.shared()?;
    let config = store.config().map_err(|invalid| Failure::new(Exit::Config, invalid.to_string()))?;
    let system = |error| Failure::system("cannot serve the page", error);
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    runtime.block_on(async {
        let page =
            open(&config).await?.store(config.shown()).pattern(&args.pattern).every(args.every.every).on_trouble(warn);
        page.check().await?;
        announce(args, &listener)?;
        page.serve(listener).await.map_err(system)?;
        Ok(Exit::Done)
    })
}

/// A page of the store, which is only read. A quorum is not connected: that would have its nodes vote.
async fn open(config: &BackendConfig) -> Result<Dashboard, Failure> {
    let BackendConfig::Redlock(quorum) = config else {
        return Ok(Dashboard::new(connect_to(config).await.map_err(failure)?));
    };
    let quorum = Arc::new(redlock::nonblocking::open(quorum).map_err(failure)?);
    let client = Client::new(quorum.clone()).map_err(|error| Failure::system("cannot inspect the nodes", error))?;
    Ok(Dashboard::new(client).quorum(quorum))
}

fn warn(trouble: Option<&str>) {
    match trouble {
        Some(reason) => say_warning(&format!("the store is unreachable; retrying: {reason}")),
        None => say_warning("the store is reachable again"),
    }
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

fn announce(args: &DashboardArgs, listener: &TcpListener) -> Result<Exit, Failure> {
    let address = listener.local_addr().map_err(|error| Failure::system("cannot serve the page", error))?;
    let url = format!("http://{address}/");
    print(&if args.json { json(&json!({ "url": url }))? } else { format!("the page is at {url}   Ctrl-C ends this") })
}
