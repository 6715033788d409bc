//! What operators should know of an ensemble.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use lock_core::BackendError;
use lock_core::examine::Check;
use tokio::time::timeout;
use zookeeper_client::Client;

use crate::ZookeeperConfig;
use crate::config::Login;
use crate::connect::{connect, in_time};
use crate::session::ANY_VERSION;

/// How long a write may take.
const WRITE_WITHIN: Duration = Duration::from_secs(2);

/// Opens a session at each server, and compares them.
pub(crate) fn examine(config: &ZookeeperConfig) -> Result<Vec<Check>, BackendError> {
    let bridge = crate::sessions::bridge()?;
    Ok(bridge.block_on(ask(config)))
}

async fn ask(config: &ZookeeperConfig) -> Vec<Check> {
    let servers = config.servers();
    let opened = join_all(servers.iter().map(async |server| {
        let server = std::slice::from_ref(server);
        in_time(config, server, connect(config, server)).await
    }))
    .await;
    let mut checks: Vec<_> = servers.iter().zip(&opened).map(|(server, opened)| reach(opened).of(server)).collect();
    let sessions: Vec<_> = opened.into_iter().flatten().collect();
    if let Some(session) = sessions.first() {
        checks.extend([timeouts(config, &sessions), majority(session).await]);
    }
    checks.extend([access(config), encryption(config)]);
    checks
}

fn reach(opened: &Result<Client, BackendError>) -> Check {
    match opened {
        Ok(_) => Check::ok("reach", "connected"),
        Err(failure) => {
            let failed = Check::failed("reach", failure.to_string());
            failure.remedy().map_or(failed.clone(), |remedy| failed.with_remedy(remedy))
        }
    }
}

/// The timeouts that the servers agreed to.
fn timeouts(config: &ZookeeperConfig, sessions: &[Client]) -> Check {
    let agreed: BTreeSet<Duration> = sessions.iter().map(Client::session_timeout).collect();
    let (shortest, longest) = agreed.first().copied().zip(agreed.last().copied()).unwrap_or_default();
    let asked = config.session().get();
    if shortest != longest {
        let message = format!(
            "the servers agree to sessions from {shortest:?} to {longest:?}: a client that moves to another one relies on its leases for too long"
        );
        return Check::finding("session", message)
            .with_remedy("give all servers the same minSessionTimeout, maxSessionTimeout and tickTime");
    }
    if longest != asked {
        return Check::remark("session", format!("leases last {longest:?}: the servers do not agree to {asked:?}"))
            .with_remedy("write session=TIME into the URL, between minSessionTimeout and maxSessionTimeout");
    }
    Check::ok("session", format!("all servers that answered agree to leases of {asked:?}"))
}

/// Whether requests that change something are answered.
async fn majority(session: &Client) -> Check {
    let written = async {
        let mut check = session.new_multi_writer();
        check.add_check_version("/", ANY_VERSION)?;
        check.commit().await
    };
    match timeout(WRITE_WITHIN, written).await {
        Ok(Ok(_)) => Check::ok("majority", "a majority of the servers takes part"),
        Ok(Err(failure)) => Check::failed("majority", failure.to_string()),
        Err(_) => Check::failed("majority", format!("no write was answered within {WRITE_WITHIN:?}"))
            .with_remedy("check that more than half of the servers are running and reach each other"),
    }
}

/// Who may end locks behind the library's back.
fn access(config: &ZookeeperConfig) -> Check {
    if config.is_open() {
        return Check::remark("access", "anybody who can connect can delete the nodes of locks")
            .with_remedy("write a user and a password into the URL, unless other logins have to use the same locks");
    }
    Check::ok("access", "only clients with this login can use the nodes")
}

fn encryption(config: &ZookeeperConfig) -> Check {
    match (config.tls(), config.login()) {
        (Some(_), _) => Check::ok("encryption", "connections are encrypted"),
        (None, Some(Login::Digest(_))) => {
            Check::remark("encryption", "connections are not encrypted: who listens in learns the password")
                .with_remedy("use zookeeper+tls:, or auth=sasl")
        }
        (None, None | Some(Login::Sasl(..))) => Check::remark("encryption", "connections are not encrypted"),
    }
}
