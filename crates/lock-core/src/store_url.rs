//! URLs that name a store: `scheme://user:secret@host:port,host:port/path?key=value`.

mod host;

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::invalid::Invalid;
use host::{decoded, hidden};

pub use host::UrlHost;

/// The characters that are percent-encoded in a path.
const NOT_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'/');

/// How the URLs of one kind of store are described to users.
#[derive(Clone, Copy, Debug)]
pub struct UrlForm {
    /// What is read, such as `redis URL`.
    pub what: &'static str,
    /// What each host is, such as `a sentinel`.
    pub host: &'static str,
    /// How to write one.
    pub remedy: &'static str,
}

/// The parts of a URL that names a store. What was percent-encoded is decoded.
///
/// `Debug`, [`shown`](Self::shown) and refusals never show a user, a secret or an option.
///
/// ```
/// # use lock_core::{StoreUrl, UrlForm};
/// let form = UrlForm { what: "URL", host: "a server", remedy: "write db://HOST:PORT,HOST:PORT/NAME" };
/// let url = StoreUrl::read("db://app:ses%40me@h1:7000,[::1]/orders?prefix=shop", form)?;
/// assert_eq!((url.user(), url.secret()), (Some("app"), Some("ses@me")));
/// assert_eq!(url.hosts()[1].to_string(), "[::1]");
/// assert_eq!((url.path(), url.option("prefix")), ("/orders", Some("shop")));
/// assert_eq!(url.shown(), "db://***@h1:7000,[::1]/orders");
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone)]
pub struct StoreUrl {
    form: UrlForm,
    shown: String,
    scheme: String,
    user: Option<String>,
    secret: Option<String>,
    hosts: Vec<UrlHost>,
    path: String,
    options: Vec<(String, String)>,
    /// Whether the name of an unknown option may be part of a secret.
    hides_options: bool,
}

/// A URL cut into its parts, which are not decoded yet.
struct Raw<'a> {
    scheme: &'a str,
    login: Option<&'a str>,
    hosts: &'a str,
    /// With its leading slash, if there is one.
    path: &'a str,
    query: &'a str,
    fragment: Option<&'a str>,
}

impl StoreUrl {
    /// The scheme of a URL in lower case; empty if it has none.
    pub fn scheme_of(url: &str) -> String {
        url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase()
    }

    /// Takes a URL apart. A URL without a host has no [`hosts`](Self::hosts).
    ///
    /// # Errors
    /// `Invalid`, without what may be secret, for what is no such URL.
    pub fn read(url: &str, form: UrlForm) -> Result<Self, Invalid> {
        let raw =
            Raw::of(url).ok_or_else(|| Invalid::new(form.what, "(hidden)", "it has no scheme and ://", form.remedy))?;
        let hosts = raw.read_hosts();
        // What is no host may be a part of a secret.
        let shown = if hosts.is_ok() { raw.shown() } else { hidden(raw.scheme) };
        let refuse = |problem: &str, remedy: &str| Invalid::new(form.what, &shown, problem, remedy);
        if raw.is_cut(hosts.is_err()) {
            return Err(refuse(
                "it has an @ after the hosts, so its user or password has a character that ends the host or port",
                "write / in a password as %2F, @ as %40, ? as %3F and # as %23",
            ));
        }
        let hosts = hosts.map_err(|problem| match problem {
            Some(problem) => refuse(&format!("the address of {} is not valid: {problem}", form.host), form.remedy),
            None => refuse("it names no host", form.remedy),
        })?;
        if raw.fragment.is_some() {
            return Err(refuse("it has a fragment (#...)", "remove it; write # in a password as %23"));
        }
        let (user, secret) = raw.login.map_or(("", ""), |login| login.split_once(':').unwrap_or((login, "")));
        let (user, secret, path) = (decoded(user), decoded(secret), decoded(raw.path));
        let (Some(user), Some(secret), Some(path)) = (user, secret, path) else {
            return Err(refuse("something in it is no UTF-8", "write other bytes behind each %"));
        };
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let (scheme, user, secret) = (raw.scheme.to_ascii_lowercase(), given(user), given(secret));
        let (options, hides_options) = (raw.options(), raw.query.contains('@'));
        Ok(Self { form, shown, scheme, user, secret, hosts, path, options, hides_options })
    }

    /// The same as a URL of these hosts, for configurations that list them. Each of them is written as in a URL.
    ///
    /// # Errors
    /// `Invalid`, without what may be secret, for what cannot be hosts and a path.
    pub fn of_hosts(scheme: &str, hosts: &[String], path: &str, form: UrlForm) -> Result<Self, Invalid> {
        let place = format!("{}{path}", hosts.join(","));
        if place.contains(['@', '?', '#']) {
            let remedy = "write HOST:PORT for each node; user and password have fields of their own";
            return Err(Invalid::new(form.what, hidden(scheme), "a node or a name contains @, ? or #", remedy));
        }
        Self::read(&format!("{scheme}://{place}"), form)
    }

    /// The same with a user and a secret.
    #[must_use]
    pub fn with_login(self, user: Option<String>, secret: Option<String>) -> Self {
        Self { user, secret, ..self }
    }

    /// The URL of a table in a configuration file, whose fields are its options.
    ///
    /// # Errors
    /// `Invalid` if the URL itself has one of these options.
    pub fn with_fields(
        self,
        options: &[&str],
        fields: impl IntoIterator<Item = (&'static str, Option<String>)>,
    ) -> Result<Self, Invalid> {
        if options.iter().any(|option| self.option(option).is_some()) {
            return Err(self.refuse("it has options", "give them as fields of the table"));
        }
        Ok(fields.into_iter().fold(self, |url, (key, value)| url.with_option(key, value)))
    }

    /// The same with one more option, if it is given.
    #[must_use]
    pub fn with_option(mut self, key: &str, value: Option<String>) -> Self {
        self.options.extend(value.map(|value| (key.to_owned(), value)));
        self
    }

    /// The URL of a store at one of the hosts alone, with the login and the path.
    pub fn of_host(&self, scheme: &str, host: &UrlHost) -> String {
        let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let path = utf8_percent_encode(self.path.trim_start_matches('/'), NOT_IN_PATH);
        let secret = self.secret().map(|secret| format!(":{}", encoded(secret))).unwrap_or_default();
        let login = format!("{}{secret}", encoded(self.user().unwrap_or_default()));
        let at = if login.is_empty() { "" } else { "@" };
        format!("{scheme}://{login}{at}{host}/{path}")
    }

    /// The same with this host alone.
    #[must_use]
    pub fn at(&self, host: &UrlHost) -> Self {
        Self { hosts: vec![host.clone()], ..self.clone() }
    }

    /// The scheme in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The user, unless it is empty.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password of the user, unless it is empty.
    pub fn secret(&self) -> Option<&str> {
        self.secret.as_deref()
    }

    /// The hosts, in the order in which they are named.
    pub fn hosts(&self) -> &[UrlHost] {
        &self.hosts
    }

    /// What follows the hosts, with its leading slash; empty if there is nothing.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of an option.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// The values of an option that may be given several times.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.options.iter().filter(move |(given, _)| given == key).map(|(_, value)| &**value)
    }

    /// Refuses options that are not among these, and those that are given twice unless they may be `repeated`.
    ///
    /// # Errors
    /// `Invalid`, which names the options that are allowed.
    pub fn check_options(&self, repeated: &[&str], once: &[&str]) -> Result<(), Invalid> {
        let is_repeated = |key: &str| repeated.contains(&key);
        let mut may_be_secret = self.hides_options;
        for (number, (key, _)) in self.options.iter().enumerate() {
            if !is_repeated(key) && !once.contains(&&**key) {
                return Err(self.unknown(key, may_be_secret, &[repeated, once].concat().join(", ")));
            }
            if !is_repeated(key) && self.options.iter().take(number).any(|(earlier, _)| earlier == key) {
                return Err(self.refuse(format!("its option \"{key}\" is given twice"), "give it once"));
            }
            // What comes next may be the rest of a password that contains an unescaped "&".
            may_be_secret |= key.contains("pass");
        }
        Ok(())
    }

    fn unknown(&self, key: &str, may_be_secret: bool, allowed: &str) -> Invalid {
        if may_be_secret || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            let remedy = format!("allowed: {allowed}; write ? as %3F, and & as %26");
            return self.refuse("it has an unknown option", remedy);
        }
        self.refuse(format!("its option \"{key}\" is unknown"), format!("allowed: {allowed}"))
    }

    /// The URL without what may be secret.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Refuses the URL for what is wrong with it.
    pub fn refuse(&self, problem: impl Into<String>, remedy: impl Into<String>) -> Invalid {
        Invalid::new(self.form.what, &self.shown, problem, remedy)
    }

    /// Refuses the URL, and says how to write one.
    pub fn refuse_form(&self, problem: impl Into<String>) -> Invalid {
        self.refuse(problem, self.form.remedy)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl<'a> Raw<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        if scheme.is_empty() || !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) {
            return None;
        }
        let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, fragment)| (rest, Some(fragment)));
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let (login, hosts) =
            authority.rsplit_once('@').map_or((None, authority), |(login, hosts)| (Some(login), hosts));
        Some(Self { scheme, login, hosts, path, query, fragment })
    }

    /// The hosts; what is wrong with one of them, or `None` if one is missing.
    fn read_hosts(&self) -> Result<Vec<UrlHost>, Option<&'static str>> {
        if self.hosts.is_empty() {
            return Ok(Vec::new());
        }
        self.hosts.split(',').map(str::trim).map(UrlHost::read).collect()
    }

    /// Whether what was taken for hosts may be the beginning of a user or of a password.
    fn is_cut(&self, has_bad_host: bool) -> bool {
        let behind = [self.query, self.fragment.unwrap_or_default()];
        let may_be_login = has_bad_host && self.login.is_none() && behind.iter().any(|part| part.contains('@'));
        may_be_login || (!self.hosts.is_empty() && self.path.contains('@'))
    }

    fn options(&self) -> Vec<(String, String)> {
        let text = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let parts = self.query.split('&').filter(|part| !part.is_empty());
        parts
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .map(|(key, value)| (text(key), text(value)))
            .collect()
    }

    /// The URL without what may be secret: an @ behind the hosts may be the end of a password.
    fn shown(&self) -> String {
        let behind = [self.path, self.query, self.fragment.unwrap_or_default()];
        if behind.iter().any(|part| part.contains('@')) {
            return hidden(self.scheme);
        }
        let login = if self.login.is_none_or(str::is_empty) { "" } else { "***@" };
        format!("{}://{login}{}{}", self.scheme.to_ascii_lowercase(), self.hosts, self.path)
    }
}

#[cfg(test)]
mod tests;
