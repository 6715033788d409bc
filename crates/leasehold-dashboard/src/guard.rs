//! Which requests are answered, and what every answer says about its use.
//!
//! The page has no login. What keeps other sites away is that a browser says whose page asks (`Origin`, `Sec-Fetch-Site`) and under
//! which name it reached this server (`Host`): with a name of its own for 127.0.0.1, a site could read the page as if it were its own.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// What every answer says beside the policy of the page.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The names under which the page may be reached, beside those of this machine.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    pub(crate) fn allow(&mut self, host: String) {
        self.0.push(host);
    }

    /// Whether this is one of them, `localhost` or a loopback address. Any port: it is another one behind `ssh -L`.
    fn allows(&self, authority: &str) -> bool {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            Some(_) | None => (authority, None),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_named = |name: &str| host.eq_ignore_ascii_case(name);
        let is_loopback = host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        (is_loopback || is_named("localhost") || self.0.iter().any(|name| is_named(name)))
            && port.is_none_or(|port| port.parse::<u16>().is_ok())
    }
}

/// Answers a request, or refuses it.
pub(crate) async fn guard(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let mut response = match check(&request, &hosts) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A status, and what to do.
type Refusal = (StatusCode, [(HeaderName, &'static str); 1], &'static str);

fn refusal(status: StatusCode, text: &'static str) -> Refusal {
    (status, [(header::ALLOW, "GET")], text)
}

fn check(request: &Request, hosts: &Hosts) -> Result<(), Refusal> {
    let host = host(request).filter(|host| hosts.allows(host));
    let named = request.uri().authority().is_none_or(|named| hosts.allows(named.as_str()));
    let Some(host) = host.filter(|_| named) else {
        return Err(refusal(
            StatusCode::MISDIRECTED_REQUEST,
            "open this page as localhost, by a loopback address, or by a name that it was told to allow\n",
        ));
    };
    if !is_own(request.headers(), host) {
        return Err(refusal(
            StatusCode::FORBIDDEN,
            "another site asked for this page; open its address in a new tab\n",
        ));
    }
    if request.method() != Method::GET {
        return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "this page can only be read\n"));
    }
    Ok(())
}

/// The host and port under which the server was reached, if exactly one is given. In HTTP/2 it is part of the address.
fn host(request: &Request) -> Option<&str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (Some(_), Some(_)) => None,
        (None, _) => request.uri().authority().map(Authority::as_str),
    }
}

/// Whether this page asks, or a person who typed its address. What is no browser does not say.
fn is_own(headers: &HeaderMap, host: &str) -> bool {
    let all =
        |name, own: &dyn Fn(&str) -> bool| headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(own));
    let own_site = |site: &str| ["same-origin", "none"].contains(&site);
    let own_origin = |origin: &str| {
        origin
            .split_once("://")
            .is_some_and(|(scheme, origin)| ["http", "https"].contains(&scheme) && origin.eq_ignore_ascii_case(host))
    };
    all(HeaderName::from_static("sec-fetch-site"), &own_site) && all(header::ORIGIN, &own_origin)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_names_of_this_machine_and_those_that_were_allowed_are_answered() {
        let mut hosts = Hosts::default();
        for name in ["admin.example", "10.0.0.9", "fd00::9"] {
            hosts.allow(name.to_owned());
        }
        for own in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1:7373",
            "127.1.2.3",
            "[::1]",
            "[::1]:7373",
            "Admin.Example:443",
            "10.0.0.9",
            "[fd00::9]:1",
        ] {
            assert!(hosts.allows(own), "{own}");
        }
        for foreign in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "admin.example.evil.example",
            "x.admin.example",
            "10.0.0.1",
            "[::2]:1",
            "localhost:x",
            "0.0.0.0",
            "a@localhost",
            "a@admin.example",
        ] {
            assert!(!hosts.allows(foreign), "{foreign}");
        }
        assert!(!Hosts::default().allows("admin.example"));
    }

    fn reached(uri: &str, hosts: &[&str]) -> Option<String> {
        let request =
            hosts.iter().fold(Request::builder().uri(uri), |request, name| request.header(header::HOST, *name));
        host(&request.body(Body::empty()).unwrap()).map(ToOwned::to_owned)
    }

    #[test]
    fn the_host_is_that_of_the_header_and_in_http_2_that_of_the_address() {
        assert_eq!(reached("/", &["admin.example"]).as_deref(), Some("admin.example"));
        assert_eq!(reached("https://admin.example:444/", &[]).as_deref(), Some("admin.example:444"));
        assert_eq!((reached("/", &[]), reached("/", &["localhost", "evil.example"])), (None, None));
    }
}
