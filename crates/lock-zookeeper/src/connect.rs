//! Connections: who the client is, whom it trusts, and below which node it works.

#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use futures_util::future::join_all;
use lock_core::{BackendError, Effect, ErrorKind, Operation};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zookeeper_client::{Client, Connector, Error, SaslOptions};

use crate::ZookeeperConfig;
use crate::config::Login;
use crate::error;

/// How long a session may take to open. Chosen: several servers can be tried.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// How long a server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// How long closing a session may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Stands for every version of a node.
pub(crate) const ANY_VERSION: i32 = -1;

/// What opens a session at one of these servers has this long.
pub(crate) async fn in_time<T>(
    config: &ZookeeperConfig,
    servers: &[String],
    opening: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    if let Ok(opened) = timeout(OPEN_WITHIN, opening).await {
        return opened;
    }
    let states = join_all(servers.iter().map(|server| state(server))).await;
    let message = format!("no session within {OPEN_WITHIN:?}: {}", states.join(", "));
    let told = error::new(Operation::Connect, ErrorKind::Unreachable, Effect::None, message);
    Err(told.with_remedy(match config.tls() {
            None => "check that a majority of the servers is running and reachable, and that these ports are not those for TLS",
            Some(_) => "check that a majority of the servers is running and reachable, that these are their ports for TLS, that sslrootcert \
                        has signed their certificates, which name these hosts, and that they accept the client's certificate",
    }))
}

/// Whether a server can be connected to.
async fn state(server: &str) -> String {
    match timeout(CONNECT_WITHIN, TcpStream::connect(server)).await {
        Ok(Ok(_)) => format!("{server} accepts connections"),
        Ok(Err(failure)) => format!("{server} cannot be reached ({failure})"),
        Err(_) => format!("{server} does not answer"),
    }
}

/// Opens a session at one of these servers.
pub(crate) async fn connect(config: &ZookeeperConfig, servers: &[String]) -> Result<Client, BackendError> {
    let failed = |failure| error::of_opening(&servers.join(","), failure);
    let client = connector(config)?.connect(&addresses(config, servers)).await.map_err(failed)?;
    if matches!(config.login(), Some(Login::Sasl(..))) {
        check_login(&client).await?;
    }
    if config.chroot().is_empty() {
        return Ok(client);
    }
    if !exists(&client, config.chroot()).await.map_err(failed)? {
        close(client).await;
        let message = format!("the chroot {} does not exist", config.chroot());
        let told = error::new(Operation::Connect, ErrorKind::Config, Effect::None, message);
        return Err(told.with_remedy("create it, or correct the path of the URL"));
    }
    client.chroot(config.chroot().to_owned()).map_err(|_| failed(Error::BadArguments(&"the chroot is not valid")))
}

/// Asks the leader, so that later reads of this session see everything that was done before.
pub(crate) async fn ask_leader(client: &Client) -> Result<(), Error> {
    let mut check = client.new_multi_writer();
    check.add_check_version("/", ANY_VERSION)?;
    Ok(check.commit().await.map(drop)?)
}

/// Closes the session, so that it ends now and not with its timeout.
pub(crate) async fn close(client: Client) {
    let mut states = client.state_watcher();
    drop(client);
    let closed = async { while !states.changed().await.is_terminated() {} };
    _ = timeout(CLOSE_WITHIN, closed).await;
}

/// Whether there is such a node. A server that is behind may not know it yet.
async fn exists(client: &Client, path: &str) -> Result<bool, Error> {
    if client.check_stat(path).await?.is_some() {
        return Ok(true);
    }
    ask_leader(client).await?;
    Ok(client.check_stat(path).await?.is_some())
}

/// Servers that have no users accept every login with SASL, and then nobody is logged in.
async fn check_login(client: &Client) -> Result<(), BackendError> {
    let denied = |message: &str| error::new(Operation::Connect, ErrorKind::Denied, Effect::None, message);
    match client.list_auth_users().await {
        Ok(users) if users.iter().any(|user| user.scheme() == "sasl") => Ok(()),
        Ok(_) => Err(denied("the servers do not know the login: they have no users for SASL")
            .with_remedy("give them a JAAS file with users and authProvider.1, or use auth=digest")),
        Err(Error::Unimplemented) => Err(denied("the servers do not say whether they know the login")
            .with_remedy("auth=sasl needs ZooKeeper 3.7: use that, or auth=digest")),
        Err(failure) => Err(error::of(Operation::Connect, failure)),
    }
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
