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

/// Plays the rounds, and returns how many of the later holders' writes did not stay. In every second round, the earlier holder
/// is paused again, until the later one has written, where its check says that it can be.
fn lost_writes(resource: &dyn Resource) -> usize {
    within("the end of the race", || {
        (0..ROUNDS)
            .filter(|round| {
                let [earlier, later] = [2 * round + 1, 2 * round + 2].map(token);
                play(resource, earlier, later, round % 2 == 0);
                resource.value() != later.to_string()
            })
            .count()
    })
}

fn play(resource: &dyn Resource, earlier: FencingToken, later: FencingToken, pauses: bool) {
    let resumed = Barrier::new(2);
    let (done, later_is_done) = channel();
    thread::scope(|scope| {
        let resumed = &resumed;
        scope.spawn(move || {
            let pause = || {
                if pauses {
                    later_is_done.recv_timeout(PATIENCE).expect("the later holder writes");
                }
            };
            resumed.wait();
            resource.write(earlier, &pause);
        });
        scope.spawn(move || {
            resumed.wait();
            assert!(resource.write(later, &|| ()), "the later holder's write is refused");
            done.send(()).ok();
        });
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
        assert!(lost_writes(&*resource) > 0, "{name} was not found");
    }
}
