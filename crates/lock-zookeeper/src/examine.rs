//! What operators should know of an ensemble.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use lock_core::BackendError;
use lock_core::examine::Check;
use tokio::time::timeout;
use zookeeper_client::{Client, Error, Permission};

use crate::ZookeeperConfig;
use crate::config::Login;
use crate::connect::{ask_leader, close, connect, in_time};
use crate::path::BASE;

/// A session of fewer ticks leaves leases that one late answer uses up.
const TICKS_MIN: u32 = 4;
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
    let works = opened.iter().any(Result::is_ok);
    let reached = servers.iter().zip(&opened).map(|(server, opened)| reach(opened, works).of(server));
    let mut checks: Vec<_> = reached.collect();
    let sessions: Vec<_> = opened.into_iter().flatten().collect();
    if let Some(session) = sessions.first() {
        checks.extend([timeouts(config, &sessions), majority(session).await, bases(config, &sessions).await]);
    }
    join_all(sessions.into_iter().map(close)).await;
    checks.extend([access(config), encryption(config)]);
    checks
}

/// Whether a server answers. If others do, it endangers no lock that this one does not.
fn reach(opened: &Result<Client, BackendError>, others_do: bool) -> Check {
    match opened {
        Ok(_) => Check::ok("reach", "connected"),
        Err(failure) if others_do => Check::remark("reach", failure.to_string()),
        Err(failure) => Check::failed("reach", failure.to_string()),
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
    if longest < config.tick() * TICKS_MIN {
        let message = format!(
            "sessions of {longest:?} are short for ticks of {:?}: leases last a tick and a half less",
            config.tick()
        );
        return Check::finding("session", message).with_remedy("use sessions of ten ticks");
    }
    if longest != asked {
        return Check::remark("session", format!("sessions last {longest:?}: the servers do not agree to {asked:?}"))
            .with_remedy("write session=TIME into the URL, between minSessionTimeout and maxSessionTimeout");
    }
    Check::ok("session", format!("all servers that answered agree to sessions of {asked:?}"))
}

/// Whether requests that change something are answered.
async fn majority(session: &Client) -> Check {
    match timeout(WRITE_WITHIN, ask_leader(session)).await {
        Ok(Ok(())) => Check::ok("majority", "a majority of the servers takes part"),
        Ok(Err(failure)) => Check::failed("majority", failure.to_string()),
        Err(_) => Check::failed("majority", format!("no write was answered within {WRITE_WITHIN:?}"))
            .with_remedy("check that more than half of the servers are running and reach each other"),
    }
}

/// Whether the servers have the same base of the tokens, and who can change it.
async fn bases(config: &ZookeeperConfig, sessions: &[Client]) -> Check {
    let base = async |session: &Client| {
        ask_leader(session).await?;
        Ok::<_, Error>(session.check_stat(&format!("/{BASE}")).await?.map(|stat| (stat.czxid, stat.ctime)))
    };
    let asked = timeout(WRITE_WITHIN, try_join_all(sessions.iter().map(base))).await;
    let Ok(Ok(bases)) = asked else { return Check::failed("base", "not every server said what its tokens begin at") };
    if bases.iter().any(|base| *base != bases[0]) {
        return Check::finding("base", "the servers do not have the same data: they are not one ensemble")
            .with_remedy("name the servers of one ensemble only");
    }
    if !config.is_open() && bases[0].is_some() && is_open_to_all(&sessions[0]).await {
        return Check::remark("base", format!("everybody can change /{BASE}: the first client had no login"))
            .with_remedy("set its ACL while no client runs");
    }
    Check::ok("base", "the servers that answered have the same tokens")
}

/// Whether everybody can write the base of the tokens.
async fn is_open_to_all(session: &Client) -> bool {
    let Ok((acls, _)) = session.get_acl(&format!("/{BASE}")).await else { return false };
    acls.iter().any(|acl| acl.scheme() == "world" && acl.permission().has(Permission::WRITE))
}

/// Who may end locks behind the library's back.
fn access(config: &ZookeeperConfig) -> Check {
    if config.is_open() {
        return Check::remark("access", "anybody who can connect can delete the nodes of locks")
            .with_remedy("write a user and a password into the URL, and acl=open if Java programs or other logins use the same locks");
    }
    Check::ok("access", "only clients with this login can use the nodes")
}

fn encryption(config: &ZookeeperConfig) -> Check {
    match (config.tls(), config.login()) {
        (Some(_), _) => Check::ok("encryption", "connections are encrypted"),
        (None, Some(Login::Digest(_))) => {
            Check::remark("encryption", "connections are not encrypted: an eavesdropper learns the password")
                .with_remedy("use zookeeper+tls:, or auth=sasl")
        }
        (None, None | Some(Login::Sasl(..))) => Check::remark("encryption", "connections are not encrypted"),
    }
}
