//! Servers that a URL names, and those that are hung or cut off.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use lock_core::{Effect, ErrorKind, Mode};
use lock_etcd::{EtcdConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{EtcdOptions, EtcdServer, Fault, Proxy, SecuredEtcd};

use crate::support::{Client, claim, server, waiting};

#[test]
fn of_several_servers_one_that_answers_is_enough() {
    let nobody = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let server = server();
    let client = Client::new(&format!("etcd://127.0.0.1:{nobody},127.0.0.1:{}", server.port()));
    client.take(&claim("several"));
}

#[test]
fn a_hung_server_is_left_for_the_next_one() {
    let (hung, server) = (EtcdServer::start(), server());
    hung.stop();
    for login in ["", "app:sesame@"] {
        let url = format!("etcd://{login}127.0.0.1:{},127.0.0.1:{}", hung.port(), server.port());
        let begun = Instant::now();
        let store = blocking::connect(&EtcdConfig::from_url(&url).unwrap());
        let took = begun.elapsed();
        assert!(store.is_ok() && took < Duration::from_secs(4), "{:?} after {took:?}", store.err());
    }
}

#[test]
fn a_hung_server_is_named_if_there_is_no_other() {
    let hung = EtcdServer::start();
    hung.stop();
    let error = blocking::connect(&EtcdConfig::from_url(&hung.url()).unwrap()).err().unwrap();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{error:?}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{}", hung.port())), "{error}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("running and reachable")), "{error:?}");
}

#[test]
fn a_server_that_a_silent_network_cuts_off_is_noticed_without_a_request() {
    let server = server();
    let proxy = Proxy::start(server.port());
    let [one, two] = [server.url(), format!("etcd://127.0.0.1:{}", proxy.port())].map(|url| Client::new(&url));
    one.take(&claim("cut off"));
    two.queue(&waiting("cut off"), 1);
    proxy.set(Fault::Hold);
    wait_for("the news that ends may have been missed", || two.is_to_recheck());
}

/// Servers end connections that are tried more often than they allow, with a message that looks like an outage.
#[test]
fn an_idle_client_is_not_taken_for_an_attacker() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    one.take(&claim("idle"));
    two.queue(&waiting("idle"), 1);
    std::thread::sleep(Duration::from_secs(30));
    assert!(!two.is_to_recheck(), "its connection has lasted");
}

#[test]
fn limits_of_the_servers_are_named() {
    let limits = ["--max-txn-ops", "40", "--max-request-bytes", "4000"];
    let server = SecuredEtcd::start(EtcdOptions::default().arguments(&limits));
    let client = Client::new(&format!("etcd://127.0.0.1:{}", server.port()));
    let permits = |name: &str, count| claim(name).in_mode(Mode::permits(count, 64).unwrap());
    client.take(&permits("few", 2));
    let long = "a".repeat(120);
    for (refused, limit) in [(permits("many", 60), "--max-txn-ops"), (permits(&long, 30), "--max-request-bytes")] {
        let error = client.acquire(&refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains(limit)), "{error:?}");
    }
    client.take(&claim(&long));
}
