//! Holders that are stopped past their leases while others go on.

use std::time::Duration;

use stress::cast::{BOOK, COOL, Cast, Mistake, POOL, TTL, limit};
use stress::check::{Rules, exclusion};
use stress::crew::Worker;
use stress::history::{Ending, What, now};
use stress::hold::Hold;
use stress::part::Facade;
use stress::register::Taken;
use stress::run::{await_that, judge};
use stress::turn::Turn;

use crate::{FACADES, file_in, post, redis, start, turns_of};

const SOON: Duration = Duration::from_secs(20);

/// A writer, a reader and a holder of all permits are stopped. Meanwhile others read and write, and have the permits. Those that
/// were stopped learn that they lost, and their late writes are refused: one for the lock, and one for each slot.
fn is_refused(url: &str, facade: Facade) {
    let mut crew = start(vec![post(url, facade, Cast::Hoarders, Mistake::None)]);
    await_that("it holds all, and has read what it will write", || {
        turns_of(&crew, 0).iter().filter(|turn| turn.from < turn.until).count() >= 3
    });
    freeze_between_requests(&mut crew.workers[0], url);
    let client = leasehold::blocking::connect(url).unwrap();
    let reader = client.rw_lock(BOOK).read().wait(SOON).acquire().unwrap();
    let read = Turn {
        lock: BOOK.into(),
        who: "reader".into(),
        hold: Hold::Read(reader.fencing_token().get()),
        since: now(),
        from: now(),
        until: now(),
    };
    let writer = reader.try_upgrade().unwrap();
    let other = client.mutex(COOL).wait(SOON).acquire().unwrap();
    let permits = client.semaphore(POOL, limit(POOL)).wait(SOON).acquire_many(limit(POOL)).unwrap();
    let slots: Vec<_> = permits.tokens().map(|(slot, token)| (slot, token.get())).collect();
    let [book, cool] = [&writer, &other].map(|guard| Hold::Write(guard.fencing_token().get()));
    let own = [(BOOK, book), (COOL, cool), (POOL, Hold::Permits(slots))];
    let own = own.map(|(lock, hold)| Turn {
        lock: lock.into(),
        who: "test".into(),
        hold,
        since: now(),
        from: now(),
        until: now(),
    });
    own.iter().for_each(|turn| crew.register.begin(&turn.lock, &turn.hold));

    crew.workers[0].thaw();
    let lost = || {
        let history = crew.history_of(0);
        history.iter().filter(|event| event.what == What::Ended(Ending::Lost)).count()
    };
    await_that("it learns of all losses", || lost() >= 3);
    assert!(writer.check().is_ok() && other.check().is_ok() && permits.check().is_ok());
    let late: Vec<_> = crew.register.entries().into_iter().map(|entry| (entry.lock, entry.taken)).collect();
    let expected = [BOOK.to_owned(), format!("{POOL}#0"), format!("{POOL}#1"), format!("{POOL}#2")];
    assert!(expected.into_iter().all(|resource| late.contains(&(resource, Taken::Refused))), "{late:?}");
    let turns = [turns_of(&crew, 0), vec![read], own.to_vec()].concat();
    let problems = exclusion(turns, Rules { losses: &[], changes: &[], ttl: TTL });
    drop((writer, other, permits));
    judge(crew, &problems);
}

/// A process that is stopped within a transaction keeps all others from the file.
fn freeze_between_requests(worker: &mut Worker, url: &str) {
    let hasty = leasehold::blocking::connect(&format!("{url}?op_timeout=200ms")).unwrap();
    await_that("it is stopped while it uses no file", || {
        worker.freeze();
        let serves_others = hasty.mutex("another").try_acquire().is_ok();
        if !serves_others {
            worker.thaw();
        }
        serves_others
    });
}

#[test]
fn a_stopped_holder_learns_of_its_loss_and_its_slots_refuse_it() {
    let server = redis();
    FACADES.into_iter().for_each(|facade| is_refused(&server.url(), facade));
}

#[test]
fn a_stopped_holder_of_a_file_learns_of_its_loss_and_its_slots_refuse_it() {
    for facade in FACADES {
        let directory = test_support::temp_dir();
        is_refused(&file_in(directory.path()), facade);
    }
}
