//! Locks whose names are below the name of another lock: their directories are in its directory.

use test_support::{CuratorAnswer, CuratorLock, CuratorPeer};

use crate::support::{Client, LONG, Viewer, claim, server, url, waiting};

#[test]
fn a_lock_below_another_one_is_none_of_its_entries_even_if_it_looks_like_one() {
    let server = server();
    let (client, viewer) = (Client::new(&url(&server.address(), LONG)), Viewer::at(&server.address()));
    let below = ["a", "0", "lock-0000000000", "my-lock-0000000001", "__READ__0000000000", "_c_1-lock-0000000000"];
    for name in below {
        client.take(&claim(&format!("names/{name}")));
    }
    assert_eq!(viewer.children("/names").len(), below.len());
    let (held, next) = (claim("names"), waiting("names"));
    client.take(&held);
    client.queue(&next, 1);
    client.releases(&held);
    client.wait_for_grant(&next);
}

/// Unless Curator, which takes any child for an entry, sorts its directory before the entries: one that begins with a digit, say.
#[test]
fn a_lock_below_another_one_keeps_no_java_program_from_that() {
    let server = server();
    let mut peer = CuratorPeer::connect(&server.address(), LONG);
    let client = Client::new(&url(&server.address(), LONG));
    for name in ["a", "orders"] {
        client.take(&claim(&format!("shared-names/{name}")));
    }
    let java = peer.acquire(CuratorLock::Mutex, "/shared-names", LONG);
    assert_eq!(peer.answer(java), CuratorAnswer::Acquired);
}
