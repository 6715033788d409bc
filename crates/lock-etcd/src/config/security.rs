//! What a URL says of users and of TLS.

use std::fmt;
use std::path::PathBuf;

use lock_core::{Invalid, StoreUrl, UrlHost};
use tonic::codegen::http::Uri;

/// User and password.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// The files for TLS.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "nothing makes one in such a build"))]
pub(crate) struct TlsFiles {
    /// The certificates of the authorities to trust; `None` for those of the system.
    pub(crate) authority: Option<PathBuf>,
    /// The client's certificate and its key.
    pub(crate) identity: Option<[PathBuf; 2]>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// Whether the URL asks for TLS.
pub(super) fn has_tls(url: &StoreUrl) -> Result<bool, Invalid> {
    match url.scheme() {
        "etcd" => Ok(false),
        "etcds" if cfg!(feature = "tls") => Ok(true),
        "etcds" => Err(url.refuse("this build does not include TLS", "build with the feature tls")),
        _ => Err(url.refuse_form("its scheme is neither etcd nor etcds")),
    }
}

pub(super) fn login(url: &StoreUrl) -> Result<Option<Login>, Invalid> {
    let form = "write etcd://USER:PASSWORD@HOST";
    match (url.user(), url.secret()) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(url.refuse("it has a password but no user", form)),
        (Some(_), None) => Err(url.refuse("it has a user but no password", form)),
        (Some(user), Some(secret)) => Ok(Some(Login { user: user.to_owned(), password: secret.to_owned() })),
    }
}

pub(super) fn tls_files(url: &StoreUrl) -> Result<TlsFiles, Invalid> {
    let file = |option| url.option(option).map(PathBuf::from);
    let identity = match (file("sslcert"), file("sslkey")) {
        (Some(certificate), Some(key)) => Some([certificate, key]),
        (None, None) => None,
        _ => return Err(url.refuse("one of sslcert and sslkey is missing", "write both, or none")),
    };
    Ok(TlsFiles { authority: file("sslrootcert"), identity })
}

/// Refuses hosts that nothing can connect to, and with TLS those that no certificate can name.
pub(super) fn check_hosts(url: &StoreUrl) -> Result<(), Invalid> {
    let is_host = |host: &UrlHost| format!("http://{host}").parse::<Uri>().is_ok();
    if !url.hosts().iter().all(is_host) {
        return Err(url.refuse("one of its hosts is neither a name nor an address", "write names in ASCII letters"));
    }
    if url.scheme() == "etcds" && !url.hosts().iter().all(is_in_certificates) {
        let remedy = "write names or addresses as certificates have them";
        return Err(url.refuse("a certificate cannot name one of its hosts", remedy));
    }
    Ok(())
}

#[cfg(feature = "tls")]
fn is_in_certificates(host: &UrlHost) -> bool {
    rustls::pki_types::ServerName::try_from(host.name.as_str()).is_ok()
}

#[cfg(not(feature = "tls"))]
const fn is_in_certificates(_: &UrlHost) -> bool {
    true
}
