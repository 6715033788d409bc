//! The first primary is cut off from replicas and sentinels, together with some clients, and goes on.

use std::iter::once;
use std::thread;
use std::time::Duration;

use stress::cast::{Cast, HOT, LONGEST_TTL};
use stress::crew::Crew;
use stress::double::{doubly_held, longest_pause};
use stress::history::now;
use stress::part::Facade;
use stress::run::await_that;
use test_support::{Fault, Proxy, Sentinel, Trio};

use crate::{BARE, Setting, crew, ground, in_each, judge, one_holder, post, turns_of, url};

const PROTECTED: Setting = "failover=dwell&max_ttl=6s&replicas=2";

/// How long the old primary goes on after the last lease from before has ended.
const GOES_ON: Duration = Duration::from_secs(1);

/// The workers. The first has the lock when the partition begins.
const AUTHOR: usize = 0;
const CLERKS: usize = 1;
const OTHER_AUTHOR: usize = 2;
const OTHER_CLERKS: usize = 3;

#[test]
fn an_old_primary_that_is_cut_off_with_its_clients_lends_nothing_if_all_replicas_have_to_acknowledge() {
    in_each([BARE, PROTECTED], |setting| {
        let (mut trio, link) = Trio::start_apart();
        let sentinel = Sentinel::cut_off(&trio.servers[0]);
        let mut crew = workers(&trio, &sentinel, setting);
        let begun = cut_off(&trio, &link);
        if setting == BARE {
            lends_twice(&mut crew)
        } else {
            lends_once(&mut crew, begun, &mut trio)
        }
        println!("{setting}: without a holder for {:.1?}", longest_pause(&crew.turns(), HOT, begun));
        let problems = if setting == BARE { Vec::new() } else { one_holder(&crew) };
        judge(crew, setting, problems);
    });
}

/// An author has one lock. Two others and clerks on both sides compete for another.
fn workers(trio: &Trio, sentinel: &Sentinel, setting: Setting) -> Crew {
    let (inside, outside) =
        (url(once(sentinel.port()), setting), url(trio.sentinels.iter().map(Sentinel::port), setting));
    let mut crew = crew(ground(), &inside, vec![post(Facade::Async, &inside, Cast::Author)]);
    await_that("the author has its lock", || !turns_of(&crew, AUTHOR).is_empty());
    crew.join(post(Facade::Blocking, &inside, Cast::Clerks));
    crew.join(post(Facade::Blocking, &outside, Cast::Author));
    crew.join(post(Facade::Async, &outside, Cast::Clerks));
    await_that("all clerks write", || [CLERKS, OTHER_CLERKS].iter().all(|clerk| !turns_of(&crew, *clerk).is_empty()));
    crew
}

/// Begins the partition, and waits until there is another primary.
fn cut_off(trio: &Trio, link: &Proxy) -> u64 {
    let begun = now();
    link.set(Fault::Refuse);
    link.cut();
    trio.wait_for_another_than(link.port());
    begun
}

/// Both primaries lend. Only the register notices.
fn lends_twice(crew: &mut Crew) {
    await_that("both authors have the lock", || !turns_of(crew, OTHER_AUTHOR).is_empty());
    await_that("they both work for a second", || doubly_held(&turns_of_both(crew)).as_secs() >= 1);
    crew.end();
    assert!(crew.register.refused() > 0, "no late write was refused");
}

fn turns_of_both(crew: &Crew) -> Vec<stress::turn::Turn> {
    [turns_of(crew, AUTHOR), turns_of(crew, OTHER_AUTHOR)].concat()
}

/// Nobody is granted anything until the old primary is a replica: all have to acknowledge. The first author is stopped in its
/// turn, and writes late.
fn lends_once(crew: &mut Crew, begun: u64, trio: &mut Trio) {
    crew.workers[AUTHOR].freeze();
    let over = begun + u64::try_from(LONGEST_TTL.as_nanos()).unwrap();
    thread::sleep(Duration::from_nanos(over.saturating_sub(now())) + GOES_ON);
    let later: Vec<_> = crew.turns().into_iter().filter(|turn| turn.from > over).collect();
    assert_eq!(later, [], "turns under leases that not all replicas have");
    trio.rejoin();
    await_that("the other author has the lock", || !turns_of(crew, OTHER_AUTHOR).is_empty());
    let refused = crew.register.refused();
    crew.workers[AUTHOR].thaw();
    await_that("its late write is refused", || crew.register.refused() > refused);
}
