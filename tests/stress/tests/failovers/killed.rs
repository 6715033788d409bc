//! The primary is killed, and its replicas lack its last grant. The holder hears no more of the servers.

use std::thread;
use std::time::Duration;

use stress::cast::Cast;
use stress::crew::{Crew, Link, Post};
use stress::double::doubly_held;
use stress::history::now;
use stress::part::Facade;
use stress::run::await_that;
use test_support::{Fault, Proxy, Sentinel, Trio};

use crate::{BARE, Setting, crew, ground, in_each, is_over, judge, one_holder, post, since, turns_of, url};

const DWELL: Setting = "failover=dwell&max_ttl=6s";
const ACKNOWLEDGED: Setting = "failover=grant&replicas=2";

/// How long nobody is granted anything that is not acknowledged.
const IN_VAIN: Duration = Duration::from_secs(1);

#[test]
fn a_grant_that_no_replica_has_is_lent_twice_without_a_dwell_or_acknowledgements() {
    in_each([BARE, DWELL, ACKNOWLEDGED], |setting| {
        let mut trio = Trio::start();
        let url = url(trio.sentinels.iter().map(Sentinel::port), setting);
        trio.part_replicas();
        let authors = [Facade::Async, Facade::Blocking].map(|facade| author(facade, &trio, setting));
        let mut crew = crew(ground(), &url, authors.into());
        if setting == ACKNOWLEDGED {
            gets_nothing(&crew, &mut trio)
        } else {
            loses_its_primary(&mut crew, &mut trio)
        }
        if setting == BARE {
            assert!(doubly_held(&crew.turns()) > Duration::ZERO, "nobody had the lock twice");
            assert!(crew.register.refused() > 0, "no late write was refused");
        }
        let problems = if setting == BARE { Vec::new() } else { one_holder(&crew) };
        judge(crew, setting, problems);
    });
}

/// It reaches each sentinel through a proxy.
fn author(facade: Facade, trio: &Trio, setting: Setting) -> Post {
    let proxies: Vec<_> = trio.sentinels.iter().map(|sentinel| Proxy::start(sentinel.port())).collect();
    let url = url(proxies.iter().map(Proxy::port), setting);
    Post { proxies, ..post(facade, &url, Cast::Author) }
}

/// One author has the lock until its lease ends.
fn loses_its_primary(crew: &mut Crew, trio: &mut Trio) {
    await_that("an author has the lock", || !crew.turns().is_empty());
    let worker = (0..2).find(|author| !turns_of(crew, *author).is_empty()).unwrap();
    crew.begin_fault(&[0, 1, 2].map(|server| Link { worker, server }), Fault::Refuse);
    let killed = trio.kill_primary();
    trio.wait_for_another_than(killed);
    await_that("the holder has lost it", || is_over(crew, worker));
}

/// Nobody has the lock until the replicas acknowledge it.
fn gets_nothing(crew: &Crew, trio: &mut Trio) {
    thread::sleep(IN_VAIN);
    assert_eq!(crew.turns(), [], "granted without an acknowledgement");
    let at = now();
    let killed = trio.kill_primary();
    trio.wait_for_another_than(killed);
    trio.rejoin();
    await_that("an author has the lock", || !crew.turns().is_empty());
    println!("{ACKNOWLEDGED}: from SIGKILL to the first grant, with both replicas back: {:.1?}", since(at));
}
