//! Connections to the first server that accepts writes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, UrlHost};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::PostgresConfig;
use crate::error::{self, BACKEND};
use crate::{login, schema};

/// How long a connection may be silent before its peer is probed, and how long the peer may take to answer. Chosen: a waiter whose connection died
/// silently learns of it before its place expires for the second time.
const SILENT_FOR: Duration = Duration::from_secs(15);

/// How long each probe may take.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// What the server sends without being asked.
pub(crate) type Told = tokio::sync::mpsc::UnboundedReceiver<String>;

/// Opens connections of one client.
pub(crate) struct Connector {
    pub(crate) config: PostgresConfig,
    /// Read once, because the system may have hundreds of certificates.
    tls: OnceLock<Result<MakeRustlsConnect, BackendError>>,
}

impl Connector {
    pub(crate) fn new(config: &PostgresConfig) -> Self {
        Self { config: config.clone(), tls: OnceLock::new() }
    }

    async fn connect_to(&self, host: &UrlHost) -> Result<(Client, Told), BackendError> {
        let config = &self.config;
        let user = login::user(config).ok_or_else(|| {
            error::new(ErrorKind::Config, Effect::None, "no user is named")
                .with_remedy("write postgres://USER@HOST/DATABASE, or set PGUSER")
        })?;
        let mut settings = Config::new();
        settings.host(&host.name).port(host.port.unwrap_or(login::PORT)).dbname(config.address.database()).user(&user);
        settings.application_name("leasehold").target_session_attrs(TargetSessionAttrs::ReadWrite);
        settings.keepalives_idle(SILENT_FOR).keepalives_interval(PROBE_EVERY).keepalives_retries(2);
        settings.tcp_user_timeout(SILENT_FOR);
        if let Some(password) = login::password(config, host, &user) {
            settings.password(password);
        }
        let opened = if config.address.is_plain(host) {
            open(settings.ssl_mode(SslMode::Disable), tokio_postgres::NoTls).await
        } else {
            let tls = self.tls.get_or_init(|| tls(config)).clone()?;
            open(settings.ssl_mode(SslMode::Require), tls).await
        };
        opened.map_err(|failure| error::of_server(&host.to_string(), failure))
    }
}

impl lock_sql::Connector for Connector {
    const BACKEND: &'static str = BACKEND;
    type Client = (Client, Told);

    fn hosts(&self) -> &[UrlHost] {
        self.config.address.hosts()
    }

    async fn connect_to(&self, host: &UrlHost) -> Result<(Client, Told), BackendError> {
        self.connect_to(host).await
    }

    async fn prepare(&self, (client, _): &mut (Client, Told)) -> Result<(), BackendError> {
        schema::prepare(client, &self.config).await
    }

    async fn is_usable((client, _): &mut (Client, Told), _unused: Duration) -> bool {
        !client.is_closed()
    }
}

async fn open<T>(settings: &Config, tls: T) -> Result<(Client, Told), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = settings.connect(tls).await?;
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = futures_util::StreamExt::next(&mut messages).await {
            // Ending the connection ahead of the answer makes what was sent count as unanswered.
            if matches!(&message, AsyncMessage::Notice(notice) if error::is_without_standby(notice)) {
                break;
            }
            if let AsyncMessage::Notification(notification) = message {
                _ = tell.send(notification.payload().to_owned());
            }
        }
    });
    Ok((client, told))
}

/// TLS with the authorities that the configuration names, or those of the system.
fn tls(config: &PostgresConfig) -> Result<MakeRustlsConnect, BackendError> {
    let refuse = |message: String| {
        error::new(ErrorKind::Config, Effect::None, message)
            .with_remedy("name a file of certificates by sslrootcert=FILE")
    };
    let mut roots = RootCertStore::empty();
    match config.address.authority() {
        Some(file) => {
            let read = |error| refuse(format!("{} cannot be read: {error}", file.display()));
            for certificate in CertificateDer::pem_file_iter(file).map_err(read)? {
                roots
                    .add(certificate.map_err(read)?)
                    .map_err(|error| refuse(format!("{}: {error}", file.display())))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(refuse("there are no certificates of authorities to trust".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| refuse(error.to_string()))?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
