//! Connections to one server.

use std::path::Path;
use std::time::Duration;
use std::{env, fs, io};

use lock_core::{BackendError, Effect, ErrorKind, UrlHost};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, SslOpts};
use tokio::time::timeout;

use crate::error::{self, BACKEND};
use crate::variables::Variables;
use crate::{MysqlConfig, schema};

/// The port of servers unless the URL gives one.
const PORT: u16 = 3306;
/// How long a connection may be silent before its peer is probed.
const SILENT_FOR: Duration = Duration::from_secs(15);
/// A connection that nobody has used for longer is tried before it is lent: the server may have closed it.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// How long such a trial may take.
const TRIED_WITHIN: Duration = Duration::from_millis(500);
/// Settings that the procedures rely on, whatever the server's defaults are. The wait for a row lock is in seconds.
const SETTINGS: &str = "SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1, \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'";

/// Opens connections of one client.
pub(crate) struct Connector {
    pub(crate) config: MysqlConfig,
}

impl lock_sql::Connector for Connector {
    const BACKEND: &'static str = BACKEND;
    type Client = Conn;

    fn hosts(&self) -> &[UrlHost] {
        self.config.address.hosts()
    }

    async fn connect_to(&self, host: &UrlHost) -> Result<Conn, BackendError> {
        let server = host.to_string();
        let settings = self.settings(host)?;
        let mut connection = Conn::new(settings).await.map_err(|failure| error::of_server(&server, failure))?;
        let variables = Variables::ask(&mut connection).await.map_err(|failure| error::of_server(&server, failure))?;
        variables.check(&server)?;
        connection.query_drop(SETTINGS).await.map_err(|failure| error::of_server(&server, failure))?;
        Ok(connection)
    }

    async fn prepare(&self, client: &mut Conn) -> Result<(), BackendError> {
        schema::prepare(client, &self.config).await
    }

    async fn is_usable(client: &mut Conn, unused: Duration) -> bool {
        if unused < FRESH_FOR {
            return true;
        }
        // The server may be a replica by now.
        let variables = timeout(TRIED_WITHIN, Variables::ask(client)).await;
        variables.is_ok_and(|answer| answer.is_ok_and(|variables| variables.check("the server").is_ok()))
    }
}

impl Connector {
    fn user(&self) -> Result<String, BackendError> {
        let user = self.config.address.user().map(str::to_owned).or_else(|| env::var("USER").ok());
        user.ok_or_else(|| {
            error::new(ErrorKind::Config, Effect::None, "no user is named")
                .with_remedy("write mysql://USER@HOST/DATABASE, or set USER")
        })
    }

    fn settings(&self, host: &UrlHost) -> Result<OptsBuilder, BackendError> {
        let address = &self.config.address;
        let password = address.password().map(str::to_owned).or_else(|| env::var("MYSQL_PWD").ok());
        let settings = OptsBuilder::default()
            .ip_or_hostname(host.name.trim_matches(['[', ']']))
            .tcp_port(host.port.unwrap_or(PORT))
            .user(Some(self.user()?))
            .pass(password)
            .db_name(Some(address.database()))
            // A socket of this machine may lead to another server than the URL.
            .prefer_socket(false)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(SILENT_FOR));
        let tls = if address.is_plain(host) { None } else { Some(self.tls()?) };
        Ok(settings.ssl_opts(tls))
    }

    /// TLS with the authorities that the configuration names, or those of the system.
    fn tls(&self) -> Result<SslOpts, BackendError> {
        lock_host::tls::choose_provider();
        let roots = match self.config.address.authority() {
            Some(file) => vec![fs::read(file).map_err(|failure| unreadable(file, failure))?.into()],
            None => {
                let certificates = rustls_native_certs::load_native_certs().certs;
                certificates.into_iter().map(|certificate| certificate.to_vec().into()).collect()
            }
        };
        Ok(SslOpts::default().with_root_certs(roots).with_disable_built_in_roots(true))
    }
}

fn unreadable(file: &Path, failure: io::Error) -> BackendError {
    let message = format!("{} cannot be read: {failure}", file.display());
    error::new(ErrorKind::Config, Effect::None, message)
        .with_source(failure)
        .with_remedy("name a file of certificates by sslrootcert=FILE")
}
