//! Claims whose answer was lost.

use std::time::Duration;

use lock_core::{Claim, Effect};
use test_support::bounds::{wait_at_most, wait_for};
use test_support::{AfterDrop, Fault, Proxy};

use crate::support::{Client, LONG, SHORT, SOON, Viewer, at, claim, server, url, waiting};

/// A client, and a way to it on which answers get lost.
struct Lossy {
    client: Client,
    proxy: Proxy,
    viewer: Viewer,
}

impl Lossy {
    /// Also makes the directory of a lock.
    fn new(port: u16, name: &str) -> Self {
        let proxy = Proxy::start(port);
        let client = Client::new(&url(&at(proxy.port()), LONG));
        let first = claim(name);
        client.take(&first);
        client.releases(&first);
        Self { client, proxy, viewer: Viewer::at(&at(port)) }
    }

    /// A claim that has made an entry, of which the client does not know, and its connection is still broken. These claims make their entry
    /// with the first request, but that of another one may be answered before.
    fn lose_the_answer(&self, entries: usize, claim: impl Fn() -> Claim) -> Claim {
        let path = format!("/{}", claim().name);
        let is_there = || self.viewer.children(&path).len() == entries;
        wait_for("an answer to a claim is lost", || {
            let claim = claim();
            self.proxy.set(Fault::DropReplies(AfterDrop::Cut));
            let error = self.client.acquire(&claim, SHORT).expect_err("no answer arrives");
            assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
            assert!(error.kind().is_transient() && self.proxy.fired() > 0, "{error:?}");
            if is_there() {
                return Some(claim);
            }
            self.proxy.heal();
            self.client.gives_up(&claim);
            None
        })
    }
}

#[test]
fn a_claim_whose_answer_was_lost_is_found_again() {
    let server = server();
    let lossy = Lossy::new(server.port(), "replies/held");
    let held = lossy.lose_the_answer(1, || waiting("replies/held"));
    lossy.proxy.heal();
    let lease = lossy.client.take(&held);
    assert_eq!(lossy.viewer.children("/replies/held").len(), 1, "there is one entry");
    assert_eq!(lossy.client.take(&held), lease, "and it is the same");
    assert!(lossy.client.renew(&lease, SOON).unwrap().is_some());
    lossy.client.releases(&held);
    assert_eq!(lossy.viewer.children("/replies/held").len(), 0);
}

#[test]
fn a_place_whose_answer_was_lost_is_found_again_and_is_woken() {
    let server = server();
    let lossy = Lossy::new(server.port(), "replies/place");
    let (other, first) = (Client::new(&url(&server.address(), LONG)), claim("replies/place"));
    other.take(&first);
    let place = lossy.lose_the_answer(2, || waiting("replies/place"));
    lossy.proxy.heal();
    lossy.client.queue(&place, 1);
    assert_eq!(lossy.viewer.children("/replies/place").len(), 2);
    other.releases(&first);
    lossy.client.wait_for_grant(&place);
}

#[test]
fn a_claim_that_is_given_up_without_an_answer_leaves_nothing_and_is_refused_later() {
    let server = server();
    let lossy = Lossy::new(server.port(), "replies/given up");
    let held = lossy.lose_the_answer(1, || waiting("replies/given up"));
    lossy.proxy.heal();
    lossy.client.gives_up(&held);
    assert_eq!(lossy.viewer.children("/replies/given up").len(), 0);
    lossy.client.acquire(&held, SOON).expect_err("it was given up");
    assert_eq!(lossy.viewer.children("/replies/given up").len(), 0);
    lossy.client.take(&claim("replies/given up"));
}

/// Requests that are sent while there is no connection wait for the next one, and may be carried out long after their callers have given up.
#[test]
fn a_claim_that_waits_for_a_connection_is_under_its_owner_or_gone() {
    let server = server();
    let lossy = Lossy::new(server.port(), "replies/queued");
    lossy.proxy.set(Fault::Refuse);
    lossy.proxy.cut();
    let [kept, left] = [claim("replies/queued"), waiting("replies/queued")];
    for late in [&kept, &left] {
        let error = lossy.client.acquire(late, SHORT / 4).expect_err("there is no connection");
        assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
    }
    lossy.proxy.heal();
    lossy.client.gives_up(&left);
    lossy.client.take(&kept);
    wait_at_most(Duration::from_secs(5), "one entry is left", || lossy.viewer.children("/replies/queued").len() == 1);
    lossy.client.releases(&kept);
}
