//! Connections over TLS, to servers that demand it, offer it, or do not have it.

use lock_core::{BackendError, Effect, ErrorKind};
use lock_mysql::{MysqlConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{Certificates, MariaOptions, MariaServer};

use crate::support::{Place, SOON, claim, client, is_busy, take};

fn trusting(server: &MariaServer, certificates: &Certificates) -> String {
    format!("{}?sslrootcert={}", server.url(), certificates.authority().display())
}

#[track_caller]
fn refusal(url: &str) -> BackendError {
    let config = MysqlConfig::from_url(url).unwrap();
    let refused = wait_for("the end of connecting", || match blocking::connect(&config) {
        Err(error) if error.to_string().contains("did not accept a connection within") => Err(error),
        outcome => Ok(outcome),
    });
    let error = refused.expect_err("it is refused");
    assert_eq!(error.effect(), Effect::None, "{error:?}");
    assert!(error.remedy().is_some(), "{error:?}");
    let named = ["127.0.0.1:", "localhost:", "/nowhere/ca.pem"];
    assert!(named.iter().any(|name| error.to_string().contains(name)), "{error}");
    assert!(!format!("{error:?}").contains("mustard"), "{error:?}");
    error
}

fn encrypted(server: &MariaServer) -> i32 {
    // Its own connection is none of a client.
    let count =
        "SELECT variable_value FROM information_schema.GLOBAL_STATUS WHERE variable_name = 'SSL_FINISHED_ACCEPTS'";
    server.execute(count).parse().unwrap()
}

#[test]
fn tls_is_used_with_an_authority_that_signed_and_refused_with_any_other() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = MariaServer::start_with(MariaOptions::default().volatile().tls(&certificates).require_tls());
    let right = trusting(&server, &certificates);
    let before = encrypted(&server);
    let (first, second) = (client(&right), client(&format!("{right}&sslmode=require")));
    take(&first, &claim("report"));
    is_busy(second.acquire(&claim("report"), SOON));
    assert!(encrypted(&server) >= before + 2);
    for url in [
        trusting(&server, &others),
        right.replace("127.0.0.1", "localhost"),
        format!("{}?sslrootcert=/nowhere/ca.pem", server.url()),
        format!("{}?sslmode=require", server.url()),
    ] {
        let error = refusal(&url);
        assert_eq!(error.kind(), ErrorKind::Config, "{url}: {error:?}");
    }
}

#[test]
fn a_server_that_demands_tls_refuses_who_comes_without_it() {
    let certificates = Certificates::new();
    let server = MariaServer::start_with(MariaOptions::default().volatile().tls(&certificates).require_tls());
    let error = refusal(&format!("{}?sslmode=disable", server.url()));
    assert!([ErrorKind::Denied, ErrorKind::Config].contains(&error.kind()), "{error:?}");
    // Within this machine, nobody listens in.
    assert_eq!(refusal(&server.url()).kind(), error.kind());
}

#[test]
fn a_password_goes_over_tls() {
    let certificates = Certificates::new();
    let options = MariaOptions::default().volatile().tls(&certificates).require_tls().require_password("sesame");
    let server = MariaServer::start_with(options);
    let url = trusting(&server, &certificates);
    take(&client(&url), &claim("report"));
    let error = refusal(&url.replace("sesame", "mustard"));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
}

#[test]
fn a_server_without_tls_is_refused_if_tls_is_demanded() {
    let (place, certificates) = (Place::new(), Certificates::new());
    let authority = format!("sslrootcert={}", certificates.authority().display());
    for options in [format!("sslmode=require&{authority}"), authority, "sslmode=require".to_owned()] {
        let error = refusal(&format!("{}?{options}", place.url));
        assert_eq!(error.kind(), ErrorKind::Config, "{options}: {error:?}");
    }
    for options in ["", "?sslmode=prefer", "?sslmode=disable"] {
        take(&client(&format!("{}{options}", place.url)), &claim(&format!("report{options}")));
    }
}

#[test]
fn who_comes_without_tls_to_a_server_that_accepts_nothing_else_is_told_what_to_try() {
    let certificates = Certificates::new();
    let server = MariaServer::start_with(MariaOptions::default().volatile().tls(&certificates));
    take(&client(&server.url()), &claim("report"));
    server.execute("SET GLOBAL require_secure_transport = ON");
    let error = refusal(&server.url());
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("sslmode=require")), "{error:?}");
    is_busy(client(&trusting(&server, &certificates)).acquire(&claim("report"), SOON));
}
