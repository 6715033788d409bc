//! One of the hosts of a URL.

use std::fmt;
use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;

/// A host in a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlHost {
    /// In lower case. An IPv6 address is without brackets.
    pub name: String,
    /// `None` if the URL leaves it to the store.
    pub port: Option<u16>,
}

impl UrlHost {
    /// Reads `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`. The error says what is wrong, unless there is no host.
    pub(super) fn read(text: &str) -> Result<Self, Option<&'static str>> {
        let bracketed = text.strip_prefix('[').and_then(|text| text.split_once(']'));
        let (name, port) = match bracketed {
            Some((name, port)) if name.parse::<Ipv6Addr>().is_ok() => (name, port),
            Some(_) => return Err(Some("it is no IPv6 address")),
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some("") => None,
            Some(port) if port.contains(':') => {
                return Err(Some("an IPv6 address needs brackets, or the port is none"));
            }
            Some(port) => Some(port.parse().map_err(|_| Some("its port is not a number up to 65535"))?),
            None if port.is_empty() => None,
            None => return Err(Some("only a port can follow the brackets")),
        };
        let name = decoded(name).ok_or(Some("it is no UTF-8"))?.to_ascii_lowercase();
        if name.is_empty() {
            return Err(None);
        }
        if name.contains(|c: char| c.is_whitespace() || c.is_control() || "<>[]\\^|".contains(c)) {
            return Err(Some("it has a character that no host has"));
        }
        Ok(Self { name, port })
    }
}

impl fmt::Display for UrlHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]") } else { f.write_str(name) }?;
        port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A part of a URL without its escapes, unless that is no text.
pub(super) fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(String::from)
}

/// A URL of which only the scheme is shown.
pub(super) fn hidden(scheme: &str) -> String {
    format!("{}://...", scheme.to_ascii_lowercase())
}
