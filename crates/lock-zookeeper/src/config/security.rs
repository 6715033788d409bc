//! What a URL says of logins, of who may use the nodes, and of TLS.

use std::fmt;
use std::path::PathBuf;

use lock_core::{Invalid, StoreUrl};

/// How a client says who it is.
#[derive(Clone)]
pub(crate) enum Login {
    /// The digest scheme, with user and password.
    Digest(Vec<u8>),
    /// SASL with the mechanism `DIGEST-MD5`, with user and password.
    Sasl(String, String),
}

/// The files for TLS.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "nothing makes one in such a build"))]
pub(crate) struct TlsFiles {
    /// The certificates of the authorities to trust.
    pub(crate) authority: PathBuf,
    /// The client's certificate and its key.
    pub(crate) identity: Option<[PathBuf; 2]>,
}

/// Who may do what with the nodes that a client creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Only clients with the same login.
    Creator,
    /// Anybody who can connect.
    Open,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// Whether the URL asks for TLS.
pub(super) fn has_tls(url: &StoreUrl) -> Result<bool, Invalid> {
    match url.scheme() {
        "zookeeper" => Ok(false),
        "zookeeper+tls" if cfg!(feature = "tls") => Ok(true),
        "zookeeper+tls" => Err(url.refuse("this build does not include TLS", "build with the feature tls")),
        _ => Err(url.refuse_form("its scheme is neither zookeeper nor zookeeper+tls")),
    }
}

pub(super) fn login(url: &StoreUrl) -> Result<Option<Login>, Invalid> {
    let form = "write zookeeper://USER:PASSWORD@HOST";
    let Some(user) = url.user() else {
        return match (url.secret(), url.option("auth")) {
            (None, None) => Ok(None),
            (Some(_), _) => Err(url.refuse("it has a password but no user", form)),
            (None, Some(_)) => Err(url.refuse("auth needs a user and a password", form)),
        };
    };
    let secret = url.secret().filter(|secret| !secret.is_empty());
    let secret = secret.ok_or_else(|| url.refuse("it has a user but no password", form))?;
    match url.option("auth") {
        Some("sasl") if [user, secret].into_iter().any(is_odd_in_sasl) => Err(url.refuse(
            "SASL cannot send every character of its user or password",
            "use none of \" and \\, and no letters of ISO 8859-1 beyond ASCII",
        )),
        None | Some("digest") => Ok(Some(Login::Digest(format!("{user}:{secret}").into_bytes()))),
        Some("sasl") => Ok(Some(Login::Sasl(user.to_owned(), secret.to_owned()))),
        Some(_) => Err(url.refuse("its auth is neither digest nor sasl", "write auth=digest or auth=sasl")),
    }
}

/// What the client sends as it is, and what it encodes in another way than the servers do.
fn is_odd_in_sasl(text: &str) -> bool {
    text.contains(['"', '\\']) || text.contains(|letter| ('\u{80}'..='\u{ff}').contains(&letter))
}

pub(super) fn tls_files(url: &StoreUrl) -> Result<TlsFiles, Invalid> {
    check_names(url)?;
    let file = |option| url.option(option).map(PathBuf::from);
    let identity = match (file("sslcert"), file("sslkey")) {
        (Some(certificate), Some(key)) => Some([certificate, key]),
        (None, None) => None,
        _ => return Err(url.refuse("one of sslcert and sslkey is missing", "write both, or none")),
    };
    let remedy = "write sslrootcert=FILE, with the certificates of the authorities to trust";
    let authority = file("sslrootcert").ok_or_else(|| url.refuse("it does not say whom to trust", remedy))?;
    Ok(TlsFiles { authority, identity })
}

pub(super) fn access(url: &StoreUrl) -> Result<Access, Invalid> {
    match (url.option("acl"), url.user()) {
        (Some("creator") | None, Some(_)) => Ok(Access::Creator),
        (Some("open"), _) | (None, None) => Ok(Access::Open),
        (Some("creator"), None) => {
            Err(url.refuse("acl=creator needs a login", "write zookeeper://USER:PASSWORD@HOST, or acl=open"))
        }
        (Some(_), _) => Err(url.refuse("its acl is neither creator nor open", "write acl=creator or acl=open")),
    }
}

/// Refuses hosts that no certificate can name.
#[cfg(feature = "tls")]
fn check_names(url: &StoreUrl) -> Result<(), Invalid> {
    let is_name = |host: &lock_core::UrlHost| rustls::pki_types::ServerName::try_from(host.name.as_str()).is_ok();
    if url.hosts().iter().all(is_name) {
        return Ok(());
    }
    Err(url.refuse("a certificate cannot name one of its hosts", "write names or addresses as certificates have them"))
}

#[cfg(not(feature = "tls"))]
fn check_names(_: &StoreUrl) -> Result<(), Invalid> {
    Ok(())
}
