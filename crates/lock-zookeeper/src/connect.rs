//! Connections: who the client is, whom it trusts, and below which node it works.

#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use tokio::time::timeout;
use zookeeper_client::{Client, Connector, Error, SaslOptions};

use crate::ZookeeperConfig;
use crate::config::Login;
use crate::error;

/// How long a session may take to open. Chosen: several servers can be tried.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// What opens a session at one of these servers has this long.
pub(crate) async fn in_time<T>(
    config: &ZookeeperConfig,
    servers: &[String],
    opening: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    let late = |_| {
        let message = format!("none of {} answered within {OPEN_WITHIN:?}", servers.join(","));
        let told = error::new(Operation::Connect, ErrorKind::Unreachable, Effect::None, message);
        Err(told.with_remedy(match config.tls() {
            None => "check that the servers are running and reachable, and that these ports are not those for TLS",
            Some(_) => "check that the servers are running and reachable, that these are their ports for TLS, that sslrootcert has signed \
                        their certificates, which name these hosts, and that they accept the client's certificate",
        }))
    };
    timeout(OPEN_WITHIN, opening).await.unwrap_or_else(late)
}

/// Opens a session at one of these servers.
pub(crate) async fn connect(config: &ZookeeperConfig, servers: &[String]) -> Result<Client, BackendError> {
    let failed = |failure| error::of_opening(&servers.join(","), failure);
    let client = connector(config)?.connect(&addresses(config, servers)).await.map_err(failed)?;
    if config.chroot().is_empty() {
        return Ok(client);
    }
    if client.check_stat(config.chroot()).await.map_err(failed)?.is_none() {
        let message = format!("the chroot {} does not exist", config.chroot());
        let told = error::new(Operation::Connect, ErrorKind::Config, Effect::None, message);
        return Err(told.with_remedy("create it, or correct the path of the URL"));
    }
    client.chroot(config.chroot().to_owned()).map_err(|_| failed(Error::BadArguments(&"the chroot is not valid")))
}

fn connector(config: &ZookeeperConfig) -> Result<Connector, BackendError> {
    let connector = Client::connector().with_session_timeout(config.session().get());
    let connector = match config.login() {
        Some(Login::Digest(login)) => connector.with_auth("digest", login),
        Some(Login::Sasl(user, password)) => {
            connector.with_sasl(SaslOptions::digest_md5(user.clone(), password.clone()))
        }
        None => connector,
    };
    #[cfg(feature = "tls")]
    if let Some(files) = config.tls() {
        return Ok(connector.with_tls(tls::options(files)?));
    }
    Ok(connector)
}

/// The servers as the client reads them.
fn addresses(config: &ZookeeperConfig, servers: &[String]) -> String {
    let scheme = if config.tls().is_some() { "tcp+tls" } else { "tcp" };
    servers.iter().map(|server| format!("{scheme}://{server}")).collect::<Vec<_>>().join(",")
}
