//! Who may connect, and who is listening.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lock_core::inspect::Query;
use lock_core::{BackendError, BlockingBackend, Certainty, Effect, ErrorKind, Mode, Note, Released};
use lock_etcd::{EtcdConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{Certificates, EtcdOptions, SecuredEtcd};

use crate::support::{Client, SOON, claim, server, waiting};

/// How long connecting may take: five seconds, and time for a loaded machine.
const CONNECTS_WITHIN: Duration = Duration::from_secs(8);

#[track_caller]
fn refusal(url: &str) -> BackendError {
    let asked = Instant::now();
    let error = blocking::connect(&EtcdConfig::from_url(url).unwrap()).map(drop).expect_err("it is refused");
    assert!(asked.elapsed() < CONNECTS_WITHIN, "{:?}", asked.elapsed());
    assert_eq!(error.effect(), Effect::None, "{error:?}");
    error
}

#[track_caller]
fn is_refused(url: &str, kind: ErrorKind, remedy: &str) {
    let error = refusal(url);
    assert_eq!(error.kind(), kind, "{url}: {error:?}");
    assert!(error.remedy().is_some_and(|told| told.contains(remedy)), "{url}: {error:?}");
    let told = format!("{error} {error:?}");
    assert!(!told.contains("sesame"), "{told}");
}

/// A URL for a host and a port with TLS, and with these options.
fn secured(host: &str, port: u16, authority: &Path, options: &str) -> String {
    format!("etcds://{host}:{port}/?sslrootcert={}{options}", authority.display())
}

/// The options for a client's certificate.
fn identity(certificates: &Certificates) -> String {
    let [certificate, key] = certificates.of_server().map(|file| file.display().to_string());
    format!("&sslcert={certificate}&sslkey={key}")
}

#[test]
fn tls_is_for_servers_that_the_authority_names_and_no_others() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = SecuredEtcd::start(EtcdOptions::default().tls(&certificates));
    let url = |host: &str, authority: &Certificates| secured(host, server.port(), &authority.authority(), "");
    let [one, two] = [(); 2].map(|()| Client::new(&url("127.0.0.1", &certificates)));
    let (first, next) = (claim("tls"), waiting("tls"));
    one.take(&first);
    two.queue(&next, 1);
    one.releases(&first);
    two.wait_for_grant(&next);
    is_refused(&url("127.0.0.1", &others), ErrorKind::Config, "sslrootcert=FILE");
    is_refused(&url("localhost", &certificates), ErrorKind::Config, "name the servers as their certificates do");
    is_refused(&format!("etcds://127.0.0.1:{}", server.port()), ErrorKind::Config, "sslrootcert=FILE");
    is_refused(&format!("etcd://127.0.0.1:{}", server.port()), ErrorKind::Unreachable, "write etcds://");
}

#[test]
fn tls_is_missed_by_name_at_a_server_without_it() {
    let certificates = Certificates::new();
    let server = server();
    let url = secured("127.0.0.1", server.port(), &certificates.authority(), "");
    is_refused(&url, ErrorKind::Unreachable, "their ports for TLS");
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_the_one_of_the_url() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = SecuredEtcd::start(EtcdOptions::default().tls(&certificates).client_certificates(&certificates));
    let url = |options: &str| secured("127.0.0.1", server.port(), &certificates.authority(), options);
    Client::new(&url(&identity(&certificates))).take(&claim("identified"));
    for options in ["".to_owned(), identity(&others)] {
        let error = refusal(&url(&options));
        // Over TLS 1.3, the server may close the connection before its reason is read.
        assert!(matches!(error.kind(), ErrorKind::Config | ErrorKind::Unreachable), "{error:?}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("certificate")), "{error:?}");
    }
}

#[test]
fn files_that_do_not_fit_are_named_before_anything_is_sent() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let url = |authority: &Path, options: &str| secured("127.0.0.1", 1, authority, options);
    let authority = certificates.authority();
    let [[certificate, own], [_, key]] = [certificates.of_server(), others.of_server()];
    let mixed = format!("&sslcert={}&sslkey={}", certificate.display(), key.display());
    is_refused(&url(&authority, &mixed), ErrorKind::Config, "the key is that of the certificate");
    let swapped = format!("&sslcert={}&sslkey={}", own.display(), certificate.display());
    is_refused(&url(&authority, &swapped), ErrorKind::Config, "PEM files");
    is_refused(&url(&authority, "&sslcert=/nowhere.pem&sslkey=/nowhere.pem"), ErrorKind::Config, "sslcert=FILE");
    is_refused(&url(Path::new("/nowhere.pem"), ""), ErrorKind::Config, "sslrootcert=FILE");
    is_refused(&url(&own, ""), ErrorKind::Config, "sslrootcert=FILE");
}

/// The error names a file that is not there.
#[test]
fn a_missing_file_is_named() {
    let error = refusal(&secured("127.0.0.1", 1, Path::new("/nowhere.pem"), ""));
    assert!(error.to_string().contains("/nowhere.pem cannot be read"), "{error}");
}

/// How long a token lasts that is not used, in the server's option and with time for a busy machine.
const TOKEN_TTL: &str = "1";
const TOKEN_ENDS: Duration = Duration::from_secs(4);

/// A server whose user `app` may use the keys below `shop/`, and whose tokens last for a second.
fn with_users() -> SecuredEtcd {
    let server = SecuredEtcd::start(EtcdOptions::default().arguments(&["--auth-token-ttl", TOKEN_TTL]));
    server.enable_users("sesame", "shop/");
    server
}

fn url(server: &SecuredEtcd, login: &str, path: &str) -> String {
    format!("etcd://{login}127.0.0.1:{}/{path}", server.port())
}

#[test]
fn users_log_in_and_others_are_denied() {
    let server = with_users();
    Client::new(&url(&server, "app:sesame@", "shop")).take(&claim("users"));
    is_refused(&url(&server, "app:sesamee@", "shop"), ErrorKind::Denied, "check user and password");
    is_refused(&url(&server, "nobody:sesame@", "shop"), ErrorKind::Denied, "check user and password");
    is_refused(&url(&server, "", "shop"), ErrorKind::Denied, "etcd://USER:PASSWORD@HOST");
    is_refused(&url(&server, "app:sesame@", "elsewhere"), ErrorKind::Denied, "role grant-permission");
}

#[test]
fn a_role_for_the_keys_of_the_path_is_enough_for_everything() {
    let server = with_users();
    let [one, two] = [(); 2].map(|()| Client::new(&url(&server, "app:sesame@", "shop")));
    let (first, next) = (claim("role"), waiting("role"));
    let lease = one.take(&first);
    two.queue(&next, 1);
    assert!(one.renew(&lease).unwrap().is_some());
    assert_eq!(one.release(&first, Certainty::Unknown), Released::Released);
    let lease = two.wait_for_grant(&next);
    assert!(two.renew(&lease).unwrap().is_some());
    one.take(&claim("permits").in_mode(Mode::permits(1, 4).unwrap()));
    let store = blocking::connect(&EtcdConfig::from_url(&url(&server, "app:sesame@", "shop")).unwrap()).unwrap();
    assert_eq!(store.list(&Query::all(), SOON).unwrap().entries.len(), 2);
    assert!(store.holder(&lease.name, SOON).unwrap().is_some());
    let by = Note::new("here", 1, "testing").unwrap();
    store.revoke(&lease.name, lease.tokens.high(), &by, SOON).unwrap();
    assert!(store.revoked_by(&lease.name, lease.tokens.high(), SOON).unwrap().is_some());
}

#[test]
fn the_name_in_a_certificate_is_a_user() {
    let certificates = Certificates::new();
    let options = EtcdOptions::default().tls(&certificates).client_certificates(&certificates);
    let server = SecuredEtcd::start(options);
    server.enable_users("sesame", "leasehold/");
    let options = identity(&certificates);
    let url = secured("127.0.0.1", server.port(), &certificates.authority(), &options);
    is_refused(&url, ErrorKind::Denied, "role grant-permission");
    server.run(&["user", "add", "--no-password", "server"]);
    server.run(&["user", "grant-role", "server", "app"]);
    Client::new(&url).take(&claim("named"));
}

#[test]
fn a_waiter_whose_user_is_removed_is_denied() {
    let server = with_users();
    let [one, two] = [(); 2].map(|()| Client::new(&url(&server, "app:sesame@", "shop")));
    let wait = waiting("removed");
    one.take(&claim("removed"));
    two.queue(&wait, 1);
    server.run(&["user", "delete", "app"]);
    let error = wait_for("the refusal", || two.acquire(&wait).err().filter(|error| error.kind() == ErrorKind::Denied));
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("user and password")), "{error:?}");
    // The streams are closed by now.
    for _ in 0..3 {
        assert_eq!(two.acquire(&wait).unwrap_err().kind(), ErrorKind::Denied);
    }
}

#[test]
fn a_token_that_has_expired_is_replaced_and_streams_open_anew() {
    let server = with_users();
    let [one, two] = [(); 2].map(|()| Client::new(&url(&server, "app:sesame@", "shop")));
    let first = claim("before");
    let lease = one.take(&first);
    two.queue(&waiting("before"), 1);
    sleep(TOKEN_ENDS);
    assert!(one.renew(&lease).unwrap().is_some());
    // The watch of this name is asked for on a stream with the new token.
    let [held, next] = [claim("after"), waiting("after")];
    one.take(&held);
    two.queue(&next, 1);
    one.releases(&held);
    two.wait_for_grant(&next);
}

#[test]
fn a_user_who_is_removed_is_denied() {
    let server = with_users();
    let client = Client::new(&url(&server, "app:sesame@", "shop"));
    let held = claim("removed");
    client.take(&held);
    server.run(&["user", "delete", "app"]);
    let error = client.acquire(&claim("later")).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("sesame"), "{error:?}");
    assert_eq!(client.try_release(&held).unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn users_may_be_enabled_while_clients_run() {
    let server = SecuredEtcd::start(EtcdOptions::default());
    let [user, stranger] = ["app:sesame@", ""].map(|login| Client::new(&url(&server, login, "shop")));
    let lease = user.take(&claim("enabled"));
    stranger.is_busy(&claim("enabled"));
    server.enable_users("sesame", "shop/");
    assert!(user.renew(&lease).unwrap().is_some());
    assert_eq!(stranger.acquire(&claim("enabled")).unwrap_err().kind(), ErrorKind::Denied);
}
