//! Who may connect, and who is listening.

use std::path::Path;
use std::time::{Duration, Instant};

use lock_core::{BackendError, Effect, ErrorKind};
use lock_zookeeper::blocking;
use test_support::bounds::wait_for;
use test_support::{Certificates, ZookeeperOptions, ZookeeperServer};

use crate::support::{Client, claim, config, server};

/// How long connecting may take: five seconds, and time for a loaded machine.
const CONNECTS_WITHIN: Duration = Duration::from_secs(8);

#[track_caller]
fn refusal(url: &str) -> BackendError {
    let asked = Instant::now();
    let error = blocking::connect(&config(url)).map(drop).expect_err("it is refused");
    assert!(asked.elapsed() < CONNECTS_WITHIN, "{:?}", asked.elapsed());
    assert_eq!(error.effect(), Effect::None, "{error:?}");
    error
}

/// A URL for a host and a port with TLS, and with these options.
fn secured(host: &str, port: u16, authority: &Path, options: &str) -> String {
    let authority = authority.display();
    format!("zookeeper+tls://{host}:{port}/?session=60s&tick=500ms&sslrootcert={authority}{options}")
}

#[test]
fn tls_is_for_servers_that_the_authority_names_and_no_others() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile().tls(&certificates));
    let url = |host: &str, authority: &Certificates| secured(host, server.secure_port(), &authority.authority(), "");
    Client::new(&url("127.0.0.1", &certificates)).take(&claim("tls"));
    let plain = format!("zookeeper://127.0.0.1:{}/?session=60s&tick=500ms", server.secure_port());
    let wrong_port = secured("127.0.0.1", server.port(), &certificates.authority(), "");
    for url in [url("127.0.0.1", &others), url("localhost", &certificates), plain, wrong_port] {
        let error = refusal(&url);
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{url}: {error:?}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("TLS")), "{url}: {error:?}");
    }
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_the_one_of_the_url() {
    let certificates = Certificates::new();
    let options = ZookeeperOptions::default().volatile().tls(&certificates).settings(&["ssl.clientAuth=need"]);
    let server = ZookeeperServer::start_with(options);
    let [certificate, key] = certificates.of_server().map(|file| file.display().to_string());
    let url = |options: &str| secured("127.0.0.1", server.secure_port(), &certificates.authority(), options);
    Client::new(&url(&format!("&sslcert={certificate}&sslkey={key}"))).take(&claim("identified"));
    assert_eq!(refusal(&url("")).kind(), ErrorKind::Unreachable);
    let error = refusal(&url("&sslcert=/nowhere.pem&sslkey=/nowhere.pem"));
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(error.to_string().contains("/nowhere.pem cannot be read"), "{error}");
}

#[test]
fn a_login_with_sasl_is_checked() {
    let server =
        ZookeeperServer::start_with(ZookeeperOptions::default().volatile().sasl_digest("app", "sesame").require_sasl());
    let url = |login: &str, options: &str| {
        format!("zookeeper://{login}{}/?session=60s&tick=500ms{options}", server.address())
    };
    Client::new(&url("app:sesame@", "&auth=sasl")).take(&claim("sasl"));
    for url in [url("app:wrong@", "&auth=sasl"), url("app:sesame@", ""), url("", "")] {
        // On a busy machine, one attempt may have too little time.
        let error = wait_for("an answer", || match refusal(&url) {
            error if error.kind() == ErrorKind::Unreachable => Err(error),
            error => Ok(error),
        });
        assert_eq!(error.kind(), ErrorKind::Denied, "{url}: {error:?}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("login")), "{error:?}");
        assert!(!error.to_string().contains("sesame"), "{error}");
    }
}

/// Such servers answer as if the login were right.
#[test]
fn servers_without_users_know_no_login_with_sasl() {
    let server = server();
    let error =
        wait_for("an answer", || match refusal(&format!("zookeeper://app:sesame@{}/?auth=sasl", server.address())) {
            error if error.kind() == ErrorKind::Unreachable => Err(error),
            error => Ok(error),
        });
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.to_string().contains("no users for SASL"), "{error}");
}

#[test]
fn a_key_of_another_certificate_is_no_outage() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let [certificate, _] = certificates.of_server();
    let [_, key] = others.of_server();
    let identity = format!("&sslcert={}&sslkey={}", certificate.display(), key.display());
    let error = refusal(&secured("127.0.0.1", 1, &certificates.authority(), &identity));
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("sslkey is the key of sslcert")), "{error:?}");
}
