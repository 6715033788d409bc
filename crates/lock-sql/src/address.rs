//! What the URL of a database says, whatever its server is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, StoreUrl, UrlForm, UrlHost, parse_duration};

use crate::encryption::Encryption;

/// How the URLs of one kind of server are written.
#[derive(Clone, Copy, Debug)]
pub struct AddressForm {
    /// What errors say.
    pub url: UrlForm,
    /// The schemes. The first one is shown.
    pub schemes: [&'static str; 2],
    /// What may follow the question mark, each once: `prefix`, `op_timeout`, `sslmode`, `sslrootcert`, and what only this kind of server has.
    pub options: &'static [&'static str],
}

/// Where a database is, and how it is reached. `Debug` hides user and password.
#[derive(Clone, Debug)]
pub struct Address {
    form: AddressForm,
    url: StoreUrl,
    prefix: Prefix,
    op_timeout: Option<Duration>,
    encryption: Encryption,
    authority: Option<PathBuf>,
}

/// What a table of a configuration file says besides its URL.
#[derive(Debug, Default)]
pub struct Fields {
    /// Options of the URL.
    pub options: Vec<(&'static str, Option<String>)>,
    /// How long one request may take.
    pub op_timeout: Option<Duration>,
}

impl Address {
    /// Reads `SCHEME://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE`.
    ///
    /// # Errors
    /// `Invalid`, without user and password, for another scheme, a missing host or database, and options that are unknown, given twice or
    /// not valid.
    pub fn read(url: &str, form: AddressForm) -> Result<Self, Invalid> {
        Self::of(StoreUrl::read(url, form.url)?, form)
    }

    /// The same of a table.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); `Invalid` if the URL has options.
    pub fn of_table(url: &str, form: AddressForm, fields: Fields) -> Result<Self, Invalid> {
        let url = StoreUrl::read(url, form.url)?.with_fields(form.options, fields.options)?;
        let address = Self::of(url, form)?;
        Ok(Self { op_timeout: Policy::check_op_timeout(fields.op_timeout)?, ..address })
    }

    fn of(url: StoreUrl, form: AddressForm) -> Result<Self, Invalid> {
        let [one, other] = form.schemes;
        if ![one, other].contains(&url.scheme()) {
            return Err(url.refuse_form(format!("its scheme is neither {one} nor {other}")));
        }
        if url.hosts().is_empty() {
            return Err(url.refuse_form("it names no host"));
        }
        if url.path().trim_start_matches('/').is_empty() {
            return Err(url.refuse_form("it names no database"));
        }
        url.check_options(&[], form.options)?;
        let op_timeout = url.option("op_timeout").map(|text| parse_duration("op_timeout", text)).transpose()?;
        Ok(Self {
            prefix: url.option("prefix").map(str::parse).transpose()?.unwrap_or_default(),
            op_timeout: Policy::check_op_timeout(op_timeout)?,
            encryption: Encryption::of_url(&url)?,
            authority: url.option("sslrootcert").map(PathBuf::from),
            url,
            form,
        })
    }

    /// An option of the URL.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.url.option(key)
    }

    /// What precedes the names of locks.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// How long one request may take.
    pub fn op_timeout(&self) -> Option<Duration> {
        self.op_timeout
    }

    /// A file with the certificates of the authorities to trust, in place of those of the system.
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }

    /// Whether connections to this host are not encrypted.
    pub fn is_plain(&self, host: &UrlHost) -> bool {
        self.encryption.is_plain(host, self.authority())
    }

    /// The servers, in the order in which they are tried.
    pub fn hosts(&self) -> &[UrlHost] {
        self.url.hosts()
    }

    /// The user.
    pub fn user(&self) -> Option<&str> {
        self.url.user()
    }

    /// The password.
    pub fn password(&self) -> Option<&str> {
        self.url.secret()
    }

    /// The database.
    pub fn database(&self) -> &str {
        self.url.path().trim_start_matches('/')
    }

    /// The servers and the database, without user and password.
    pub fn place(&self) -> String {
        let hosts: Vec<_> = self.hosts().iter().map(ToString::to_string).collect();
        format!("{}://{}/{}", self.form.schemes[0], hosts.join(","), self.database())
    }
}
