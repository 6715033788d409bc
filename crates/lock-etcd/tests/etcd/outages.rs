//! Servers that restart, that forget, and that do not answer.

use std::net::TcpListener;
use std::time::Duration;

use lock_core::{Effect, ErrorKind, Fenced};
use lock_etcd::{EtcdConfig, blocking};
use test_support::bounds::wait_for;

use crate::support::{Client, claim, start, waiting};

#[test]
fn a_lease_outlives_a_restart_of_the_server() {
    let mut server = start();
    let client = Client::new(&server.url());
    let lease = client.take(&claim("kept"));
    server.restart_with_data();
    wait_for("a renewal", || client.renew(&lease).is_ok_and(|lasts| lasts > Some(Duration::from_secs(50))));
    assert_eq!(client.fence(&lease), Fenced::Acknowledged);
}

#[test]
fn waiters_are_woken_after_a_restart_of_the_server() {
    let mut server = start();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let (first, next) = (claim("woken"), waiting("woken"));
    one.take(&first);
    two.queue(&next, 1);
    server.restart_with_data();
    wait_for("the place", || two.acquire(&next).is_ok());
    wait_for("the release", || one.try_release(&first).is_ok());
    two.wait_for_grant(&next);
}

#[test]
fn tokens_rise_over_a_loss_of_all_data() {
    let mut server = start();
    let client = Client::new(&server.url());
    let lease = client.take(&claim("lost"));
    server.restart_empty();
    wait_for("the loss", || client.renew(&lease) == Ok(None));
    let later = wait_for("a grant", || client.try_take(&claim("lost")));
    assert!(later.tokens.low() > lease.tokens.high());
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let config = EtcdConfig::from_url(&format!("etcd://127.0.0.1:{port}")).unwrap();
    let error = blocking::connect(&config).err().unwrap();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None));
    let text = error.to_string();
    assert!(text.contains(&format!("127.0.0.1:{port}")) && text.contains("refused"), "{text}");
}
