//! The base of the tokens.

use lock_core::{Answer, ErrorKind, FencingToken};
use lock_zookeeper::blocking;
use test_support::bounds::wait_for;
use test_support::{ZookeeperOptions, ZookeeperServer};

use crate::support::{Client, LONG, SOON, claim, config, url};

/// Tokens are above the one that an operator names, also those of clients that were connected before.
#[test]
fn a_raised_base_counts_for_all_clients() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    let url = url(&server.address(), LONG);
    let client = Client::new(&url);
    let held = claim("base/held");
    let before = client.take(&held);
    let above = FencingToken::new(before.tokens.high().get() + 1_000_000_000_000).unwrap();
    let raise = || wait_for("an answer", || blocking::raise_base(&config(&url), above));
    assert!(raise());
    assert!(!raise(), "it is high enough");

    wait_for("the client has ended its session", || client.sessions_ended() == 1);
    let after = wait_for("a lease in the next session", || client.acquire(&claim("base/next"), SOON));
    let Answer::Granted { lease, .. } = after else { panic!("{after:?}") };
    assert!(lease.tokens.low() > above);
    assert_eq!(client.renew(&before, SOON).unwrap(), None, "it has ended with its session");
    let again = Client::new(&url);
    let lease = wait_for("the entry of the old session is gone", || match again.acquire(&claim("base/held"), SOON) {
        Ok(Answer::Granted { lease, .. }) => Ok(lease),
        other => Err(format!("{other:?}")),
    });
    assert!(lease.tokens.low() > above);
}

/// Somebody has written something else into the node: then the command that raises the base mends it.
#[test]
fn a_base_that_is_no_number_is_written_again() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    let url = url(&server.address(), LONG);
    let token = FencingToken::new(2_000_000_000_000_000).unwrap();
    let raise = |above| blocking::raise_base(&config(&url), above);
    assert!(wait_for("an answer", || raise(token)), "there was none");
    server.run(&["set", "/leasehold-base", "soon"]);
    let error = wait_for("an answer", || match blocking::connect(&config(&url)).map(drop) {
        Err(error) if error.kind() != ErrorKind::Unreachable => Ok(error),
        other => Err(format!("{other:?}")),
    });
    assert!(error.to_string().contains("holds no number"), "{error}");
    assert!(wait_for("an answer", || raise(token)));
    assert!(Client::new(&url).take(&claim("base/fixed")).tokens.low() > token);

    let too_high = raise(FencingToken::MAX).unwrap_err();
    assert_eq!(too_high.kind(), ErrorKind::Config, "{too_high:?}");
    assert!(Client::new(&url).take(&claim("base/kept")).tokens.low() > token);
}
