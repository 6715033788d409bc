//! The base of the tokens.

use lock_core::{ErrorKind, FencingToken};
use lock_etcd::{EtcdConfig, blocking};
use test_support::bounds::wait_for;

use crate::support::{Client, claim, server};

fn config(url: &str) -> EtcdConfig {
    EtcdConfig::from_url(url).unwrap()
}

fn raise(url: &str, above: FencingToken) -> bool {
    wait_for("an answer", || blocking::raise_base(&config(url), above))
}

/// Tokens are above the one that an operator names, also those of clients that were connected before.
#[test]
fn a_raised_base_counts_for_all_clients() {
    let server = server();
    let url = format!("{}/raised", server.url());
    let client = Client::new(&url);
    let before = client.take(&claim("held"));
    let above = FencingToken::new(before.tokens.high().get() + 1_000_000_000_000).unwrap();
    assert!(raise(&url, above));
    assert!(!raise(&url, above), "it is high enough");
    assert!(client.take(&claim("next")).tokens.low() > above);
    assert!(Client::new(&url).take(&claim("another")).tokens.low() > above);
    assert_eq!(client.renew(&before).unwrap(), None, "its token is no longer that of its entry");
}

/// Somebody has written something else into the key, or deleted it: then the command that raises the base mends it.
#[test]
fn a_base_that_is_no_number_is_written_again() {
    let server = server();
    let url = format!("{}/fixed", server.url());
    let token = FencingToken::new(2_000_000_000_000_000).unwrap();
    assert!(raise(&url, token), "there was none");
    server.run(&["put", "fixed/leasehold-base", "soon"]);
    let error = wait_for("an answer", || match blocking::connect(&config(&url)).map(drop) {
        Err(error) if error.kind() == ErrorKind::Config => Ok(error),
        other => Err(format!("{other:?}")),
    });
    assert!(error.to_string().contains("holds no number"), "{error}");
    assert!(raise(&url, token));
    assert!(Client::new(&url).take(&claim("fixed")).tokens.low() > token);

    let too_high = blocking::raise_base(&config(&url), FencingToken::MAX).unwrap_err();
    assert_eq!(too_high.kind(), ErrorKind::Config, "{too_high:?}");
    assert!(Client::new(&url).take(&claim("kept")).tokens.low() > token);
}

/// The first server that is named is not there.
#[test]
fn another_server_is_asked_if_one_does_not_answer() {
    let server = server();
    let url = format!("etcd://127.0.0.1:1,127.0.0.1:{}/other", server.port());
    assert!(raise(&url, FencingToken::new(2_000_000_000_000_000).unwrap()));
    let unreachable = blocking::raise_base(&config("etcd://127.0.0.1:1/other"), FencingToken::MAX).unwrap_err();
    assert_eq!(unreachable.kind(), ErrorKind::Unreachable, "{unreachable:?}");
}
