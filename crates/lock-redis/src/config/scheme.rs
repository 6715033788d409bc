//! How the servers of a configuration are found, as the scheme of its URL says.

use std::net::IpAddr;

use lock_core::{Invalid, StoreUrl, UrlForm, UrlHost};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

use crate::address::Address;
use crate::classify::words;
use crate::deployment::Deployment;
use crate::failover::OnFailover;

const WHAT: &str = "redis URL";

/// The servers of a configuration.
#[derive(Clone)]
pub(crate) struct Servers {
    /// What they are together.
    pub(crate) deployment: Deployment,
    /// How each is reached. Unless there is one, the address means nothing.
    pub(crate) server: ConnectionInfo,
    /// How those are reached that know the others, in the order of asking: the sentinels, or a few servers of the cluster.
    pub(crate) guides: Vec<ConnectionInfo>,
    /// The name under which sentinels know the primary.
    pub(crate) master: String,
}

type Read = Result<Servers, Invalid>;

/// What follows from the scheme of a URL.
pub(super) struct Scheme {
    names: &'static [&'static str],
    pub(super) form: UrlForm,
    /// Options that no other URL has.
    pub(super) options: &'static [&'static str],
    /// What clients do unless it is configured.
    pub(super) on_failover: OnFailover,
    pub(super) read: fn(&StoreUrl) -> Read,
}

static SCHEMES: [Scheme; 4] = [
    Scheme {
        names: &["redis", "rediss"],
        form: UrlForm {
            what: WHAT,
            host: "the server",
            remedy: "write redis://HOST, such as redis://127.0.0.1; user, password, port and database are optional",
        },
        options: &[],
        on_failover: OnFailover::Grant,
        read: one_server,
    },
    Scheme {
        names: &["unix", "redis+unix"],
        form: UrlForm { what: WHAT, host: "the server", remedy: "write unix:///PATH, with three slashes" },
        options: &["db", "user", "pass"],
        on_failover: OnFailover::Grant,
        read: socket,
    },
    Scheme {
        names: &["redis+sentinel", "rediss+sentinel"],
        form: UrlForm {
            what: WHAT,
            host: "a sentinel",
            remedy: "write redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/NAME/DB, with the name of the primary",
        },
        options: &["sentinel_username", "sentinel_password"],
        on_failover: OnFailover::Dwell,
        read: sentinels,
    },
    Scheme {
        names: &["redis+cluster", "rediss+cluster"],
        form: UrlForm {
            what: WHAT,
            host: "a server of the cluster",
            remedy: "write redis+cluster://HOST:PORT,HOST:PORT, with a few servers of the cluster",
        },
        options: &[],
        on_failover: OnFailover::Dwell,
        read: cluster,
    },
];

impl Scheme {
    /// The scheme of this name.
    pub(super) fn of(name: &str) -> Result<&'static Self, Invalid> {
        SCHEMES.iter().find(|scheme| scheme.names.contains(&name)).ok_or_else(|| {
            let remedy = "use redis://, rediss://, redis+unix://, unix://, redis+sentinel://, rediss+sentinel://, \
                          redis+cluster:// or rediss+cluster://";
            Invalid::new(WHAT, "(hidden)", "its scheme is unknown", remedy)
        })
    }
}

impl Servers {
    fn one(server: ConnectionInfo) -> Self {
        Self { deployment: Deployment::OneServer, server, guides: Vec::new(), master: String::new() }
    }

    /// Where the guides are.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        self.guides.iter().filter_map(|guide| Address::of(guide.addr())).collect()
    }

    /// These servers as the store that all clients with the same list of guides share.
    pub(crate) fn store(&self) -> String {
        let mut guides: Vec<_> = self.addresses().iter().map(Address::to_string).collect();
        guides.sort();
        guides.dedup();
        let (guides, database) = (guides.join(","), self.server.redis_settings().db());
        match self.deployment {
            Deployment::Sentinels => format!("redis+sentinel://{guides}/{}/{database}", self.master),
            Deployment::Cluster | Deployment::OneServer | Deployment::Quorum => format!("redis+cluster://{guides}"),
        }
    }
}

fn one_server(url: &StoreUrl) -> Read {
    let servers = addresses(url, 6379)?;
    let [server] = &*servers else {
        let remedy = "write redis+sentinel://HOST,HOST,HOST/NAME for sentinels, redis+cluster://HOST,HOST for a cluster, or \
                      redlock://HOST,HOST,HOST for independent servers";
        return Err(url.refuse("it names several hosts, and this is the URL of one server", remedy));
    };
    let remedy = "write redis://HOST/NUMBER, such as redis://127.0.0.1/1";
    let database = database(url, url.path().trim_matches('/'), remedy)?;
    Ok(Servers::one(reached(url, server, login(url).set_db(database))?))
}

fn socket(url: &StoreUrl) -> Read {
    if !url.hosts().is_empty() || url.path().is_empty() {
        return Err(url.refuse_form("it names a host"));
    }
    let database = database(url, url.option("db").unwrap_or_default(), "write ?db=NUMBER, such as ?db=1")?;
    let login = with_login(url.option("user"), url.option("pass")).set_db(database);
    Ok(Servers::one(reached_at(url, ConnectionAddr::Unix(url.path().into()), login)?))
}

fn sentinels(url: &StoreUrl) -> Read {
    let nodes = addresses(url, 26379)?;
    let names = url.path().trim_start_matches('/').trim_end_matches('/');
    let (master, number) = names.split_once('/').unwrap_or((names, ""));
    if url.path().starts_with("//") || master.is_empty() {
        return Err(url.refuse_form("it does not name the primary"));
    }
    // Sentinels accept no other names, and so none of them needs an escape.
    if !master.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return Err(url.refuse_form("the name of the primary has characters that sentinels do not accept"));
    }
    let database = database(url, number, "write redis+sentinel://HOST:PORT/NAME/NUMBER")?;
    let server = reached(url, &nodes[0], login(url).set_db(database))?;
    let own = with_login(url.option("sentinel_username"), url.option("sentinel_password"));
    let guides = nodes.iter().map(|node| reached(url, node, own.clone())).collect::<Result<_, _>>()?;
    Ok(Servers { deployment: Deployment::Sentinels, server, guides, master: master.to_owned() })
}

fn cluster(url: &StoreUrl) -> Read {
    let servers = addresses(url, 6379)?;
    if !["", "/", "/0"].contains(&url.path()) {
        let remedy = "write redis+cluster://HOST:PORT,HOST:PORT without a path, and use a prefix";
        return Err(url.refuse("a cluster has no databases but 0", remedy));
    }
    let guides: Vec<_> = servers.iter().map(|server| reached(url, server, login(url))).collect::<Result<_, _>>()?;
    Ok(Servers { deployment: Deployment::Cluster, server: guides[0].clone(), guides, master: String::new() })
}

/// Where the hosts are: one at least.
fn addresses(url: &StoreUrl, port: u16) -> Result<Vec<Address>, Invalid> {
    if url.hosts().is_empty() {
        return Err(url.refuse_form("it names no host"));
    }
    if url.hosts().iter().any(|host| host.name.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified())) {
        return Err(url.refuse("it names a wildcard address, to which no client can connect", "name the server's own"));
    }
    let address = |host: &UrlHost| Address { host: host.name.clone(), port: host.port.unwrap_or(port) };
    Ok(url.hosts().iter().map(address).collect())
}

fn database(url: &StoreUrl, text: &str, remedy: &str) -> Result<i64, Invalid> {
    match text.parse::<u32>() {
        Ok(number) => Ok(number.into()),
        Err(_) if text.is_empty() => Ok(0),
        Err(_) => Err(url.refuse("its database is not a number", remedy)),
    }
}

fn login(url: &StoreUrl) -> RedisConnectionInfo {
    with_login(url.user(), url.secret())
}

fn with_login(user: Option<&str>, secret: Option<&str>) -> RedisConnectionInfo {
    let login = user.into_iter().fold(RedisConnectionInfo::default(), RedisConnectionInfo::set_username);
    secret.into_iter().fold(login, RedisConnectionInfo::set_password)
}

/// How to reach a host of a URL.
fn reached(url: &StoreUrl, server: &Address, login: RedisConnectionInfo) -> Result<ConnectionInfo, Invalid> {
    let Address { host, port } = server.clone();
    if !url.scheme().starts_with("rediss") {
        return reached_at(url, ConnectionAddr::Tcp(host, port), login);
    }
    if !cfg!(feature = "tls") {
        let remedy = "build with the feature \"tls\", or use redis:// on a trusted network";
        return Err(url.refuse("this build has no TLS", remedy));
    }
    reached_at(url, ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }, login)
}

fn reached_at(url: &StoreUrl, addr: ConnectionAddr, login: RedisConnectionInfo) -> Result<ConnectionInfo, Invalid> {
    let info = addr.into_connection_info().map_err(|error| url.refuse_form(words(&error)))?;
    Ok(info.set_redis_settings(login))
}

#[cfg(test)]
mod tests;
