//! Whether connections are encrypted.

use std::net::IpAddr;

use lock_core::{Invalid, StoreUrl, UrlHost};

/// Whether connections are encrypted. A certificate is always checked, with the name of its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// Never.
    Disabled,
    /// Always, except to a server on this machine, unless the authority to trust is given.
    #[default]
    Preferred,
    /// Always.
    Required,
}

impl Encryption {
    /// Reads the option `sslmode` of a URL.
    ///
    /// # Errors
    /// `Invalid` for an unknown mode.
    pub(crate) fn of_url(url: &StoreUrl) -> Result<Self, Invalid> {
        match url.option("sslmode") {
            None | Some("prefer") => Ok(Self::Preferred),
            Some("disable") => Ok(Self::Disabled),
            Some("require" | "verify-ca" | "verify-full") => Ok(Self::Required),
            Some(_) => Err(url.refuse("its sslmode is unknown", "write disable, prefer or require")),
        }
    }

    /// Whether connections to this host are not encrypted. Within this machine, nobody listens in; and the certificate of a server for
    /// itself is rarely one that anybody trusts.
    pub(crate) fn is_plain(self, host: &UrlHost, authority: Option<&std::path::Path>) -> bool {
        let is_here =
            host.name == "localhost" || host.name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match self {
            Self::Disabled => true,
            Self::Preferred => is_here && authority.is_none(),
            Self::Required => false,
        }
    }
}
