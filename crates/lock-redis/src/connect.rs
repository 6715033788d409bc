//! What every connection of ours has in common.

use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Client, ErrorKind, RedisError, ServerErrorKind};

use crate::failure::Failure;

/// How long a new connection may take, greeting included.
///
/// # Source
/// The default of redis-rs for asynchronous connections; a server that is further away is of no use for locks.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// How soon an idle connection asks whether its peer still exists, and how often until it is given up.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

/// The same client with the socket options that locks want: small requests leave at once, dead peers are noticed.
pub(crate) fn tuned(client: &Client) -> Result<Client, Failure> {
    prepare_tls();
    let info = client.get_connection_info().clone();
    let keepalive = info.tcp_settings().keepalive().cloned().unwrap_or_else(|| {
        TcpKeepalive::new().with_time(KEEPALIVE.0).with_interval(KEEPALIVE.1).with_retries(KEEPALIVE.2)
    });
    let tcp: TcpSettings = info.tcp_settings().clone().set_nodelay(true).set_keepalive(keepalive);
    let redis = info.redis_settings().clone().set_lib_name("leasehold", env!("CARGO_PKG_VERSION"));
    Client::open(info.set_tcp_settings(tcp).set_redis_settings(redis))
        .map_err(|error| crate::failure::classify(crate::failure::Stage::Connecting, CONNECT_WITHIN, &error))
}

/// Chooses the cryptography where the program has not chosen any: without a choice, rustls panics.
fn prepare_tls() {
    #[cfg(feature = "tls")]
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Lost races are won by somebody else's choice, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
}

/// Whether the server has forgotten the script, so that nothing was run.
pub(crate) fn has_forgotten_the_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
