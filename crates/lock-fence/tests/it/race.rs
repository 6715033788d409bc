//! Two holders that were paused past their leases resume at the same moment, and write. Whatever the order in which they
//! arrive, the write of the later holder stays.

use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;

use lock_core::FencingToken;
use test_support::bounds::{PATIENCE, within};

use crate::resources::{self, Resource};
use crate::token;

const ROUNDS: u64 = 60;

/// Plays the rounds, and returns how many of the later holders' writes did not stay.
fn lost_writes(resource: &dyn Resource) -> usize {
    let is_lost = |round: &u64| {
        let [earlier, later] = [2 * round + 1, 2 * round + 2].map(token);
        if round.is_multiple_of(2) {
            at_once(resource, earlier, later)
        } else {
            one_in_the_other(resource, earlier, later)
        }
        resource.value() != later.to_string()
    };
    within("the end of the race", || (0..ROUNDS).filter(is_lost).count())
}

fn at_once(resource: &dyn Resource, earlier: FencingToken, later: FencingToken) {
    let resumed = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            resumed.wait();
            resource.write(earlier, &|| ());
        });
        resumed.wait();
        assert!(resource.write(later, &|| ()), "the later holder's write is refused");
    });
}

/// The earlier holder is paused again where its check says that it can be, and the later one writes meanwhile.
fn one_in_the_other(resource: &dyn Resource, earlier: FencingToken, later: FencingToken) {
    let ((paused, is_paused), (done, later_is_done)) = (channel(), channel());
    thread::scope(|scope| {
        scope.spawn(move || {
            let pause = || {
                paused.send(()).unwrap();
                later_is_done.recv_timeout(PATIENCE).expect("the later holder writes");
            };
            resource.write(earlier, &pause);
        });
        is_paused.recv_timeout(PATIENCE).expect("the earlier holder is paused");
        assert!(resource.write(later, &|| ()), "the later holder's write is refused");
        done.send(()).unwrap();
    });
}

#[test]
fn of_two_holders_that_resume_at_once_the_later_ones_write_stays() {
    for (name, resource) in resources::checked() {
        assert_eq!(lost_writes(&*resource), 0, "{name}");
    }
}

#[test]
fn a_check_that_is_not_one_step_with_the_write_loses_writes() {
    for (name, resource) in resources::broken() {
        let lost = u64::try_from(lost_writes(&*resource)).unwrap();
        assert!(lost >= ROUNDS / 2, "{name} was not found");
    }
}
