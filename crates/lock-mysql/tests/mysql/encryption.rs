//! Connections over TLS, to servers that demand it, offer it, or do not have it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use lock_core::{BackendError, Effect, ErrorKind};
use lock_mysql::{MysqlConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{Certificates, MysqlOptions, MysqlServer};

use crate::support::{Place, SOON, claim, client, is_busy, take};

fn trusting(server: &MysqlServer, certificates: &Certificates) -> String {
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

fn encrypted(server: &MysqlServer) -> i32 {
    // Its own connection is none of a client.
    let told = server.execute("SHOW GLOBAL STATUS LIKE 'Ssl_finished_accepts'");
    told.split_once('\t').unwrap().1.parse().unwrap()
}

#[test]
fn tls_is_used_with_an_authority_that_signed_and_refused_with_any_other() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = MysqlServer::start_with(MysqlOptions::default().volatile().tls(&certificates).require_tls());
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
    let server = MysqlServer::start_with(MysqlOptions::default().volatile().tls(&certificates).require_tls());
    let error = refusal(&format!("{}?sslmode=disable", server.url()));
    assert!([ErrorKind::Denied, ErrorKind::Config].contains(&error.kind()), "{error:?}");
    // Within this machine, nobody listens in.
    assert_eq!(refusal(&server.url()).kind(), error.kind());
}

#[test]
fn a_password_goes_over_tls() {
    let certificates = Certificates::new();
    let options = MysqlOptions::default().volatile().tls(&certificates).require_tls().require_password("sesame");
    let server = MysqlServer::start_with(options);
    let url = trusting(&server, &certificates);
    take(&client(&url), &claim("report"));
    let error = refusal(&url.replace("sesame", "mustard"));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
}

/// Passes one connection on to a port at a time, and keeps what clients send.
fn tapped(port: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let (listener, heard) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(Mutex::default()));
    let (here, hears) = (listener.local_addr().unwrap().port(), Arc::clone(&heard));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (server, hears) = (TcpStream::connect(("127.0.0.1", port)).unwrap(), Arc::clone(&hears));
            let (mut answers, mut told) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut answers, &mut told));
            thread::spawn(move || listen(client, server, &hears));
        }
    });
    (here, heard)
}

fn listen(mut client: TcpStream, mut server: TcpStream, heard: &Mutex<Vec<u8>>) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        let count = client.read(&mut bytes)?;
        if count == 0 {
            return server.shutdown(Shutdown::Both);
        }
        heard.lock().unwrap().extend_from_slice(&bytes[..count]);
        server.write_all(&bytes[..count])?;
    }
}

/// MySQL gives clients a key, with which they encrypt it.
#[test]
fn who_listens_hears_no_password_even_without_tls() {
    let server = MysqlServer::start_with(MysqlOptions::default().volatile().require_password("sesame"));
    let (port, heard) = tapped(server.port());
    let url = format!("{}?sslmode=disable", server.url_at(port));
    assert_eq!(refusal(&url.replace("sesame", "mustard")).kind(), ErrorKind::Denied);
    take(&client(&url), &claim("report"));
    is_busy(client(&url).acquire(&claim("report"), SOON));
    let heard = String::from_utf8_lossy(&heard.lock().unwrap()).into_owned();
    assert!(heard.contains("locker") && heard.contains("leasehold_claim_1"), "{heard}");
    assert!(!heard.contains("sesame") && !heard.contains("mustard"), "{heard}");
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
    let server = MysqlServer::start_with(MysqlOptions::default().volatile().tls(&certificates));
    take(&client(&server.url()), &claim("report"));
    server.execute("SET GLOBAL require_secure_transport = ON");
    let error = refusal(&server.url());
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("sslmode=require")), "{error:?}");
    is_busy(client(&trusting(&server, &certificates)).acquire(&claim("report"), SOON));
}
