//! How connections are made.

#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use tonic::transport::{Channel, Endpoint};

use crate::EtcdConfig;
use crate::error;

/// How long a connection may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);
/// How often a connection in use is tried that nothing arrives on. Servers end those that are tried more often than every five seconds.
///
/// # Source
/// etcd: `--grpc-keepalive-min-time`.
const TRIED_EVERY: Duration = Duration::from_secs(6);
/// How long an answer to that may take. Chosen: a busy server answers sooner.
const TRIED_FOR: Duration = Duration::from_secs(4);

/// A connection to each server, which is made when the first request is sent. To be called in a runtime.
pub(crate) fn channels(config: &EtcdConfig) -> Result<Vec<Channel>, BackendError> {
    #[cfg(feature = "tls")]
    let tls = config.tls().map(tls::settings).transpose()?;
    config
        .servers()
        .map(|server| {
            let scheme = if config.tls().is_some() { "https" } else { "http" };
            let endpoint = Endpoint::from_shared(format!("{scheme}://{server}")).map_err(refused)?;
            #[cfg(feature = "tls")]
            let endpoint = match &tls {
                Some(tls) => endpoint.tls_config(tls.clone().timeout(CONNECTS_WITHIN)).map_err(refused)?,
                None => endpoint,
            };
            Ok(channel(endpoint))
        })
        .collect()
}

fn channel(endpoint: Endpoint) -> Channel {
    endpoint
        .connect_timeout(CONNECTS_WITHIN)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(TRIED_EVERY)
        .keep_alive_timeout(TRIED_FOR)
        .connect_lazy()
}

fn refused(failure: tonic::transport::Error) -> BackendError {
    let message = error::innermost(&failure).to_string();
    let told = error::new(Operation::Connect, ErrorKind::Config, Effect::None, message).with_source(failure);
    told.with_remedy("check the hosts of the URL, that sslcert and sslkey are PEM files, and that the key is that of the certificate")
}
