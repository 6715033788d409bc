//! Holders that are stopped past their leases while others go on.

use std::time::Duration;

use stress::cast::{BOOK, Cast, POOL, TTL, limit};
use stress::check::{Rules, exclusion};
use stress::history::{Ending, What, now};
use stress::hold::Hold;
use stress::register::Taken;
use stress::run::{await_that, judge};
use stress::turn::Turn;

use crate::{redis, sound, turns_of};

const SOON: Duration = Duration::from_secs(20);

/// A writer and a holder of all permits are stopped. Meanwhile others read and write, and have the permits. Those that were
/// stopped learn that they lost, and their late writes are refused: one for the lock, and one for each slot.
#[test]
fn a_stopped_holder_learns_of_its_loss_and_its_slots_refuse_it() {
    let server = redis();
    let mut crew = sound(&server.url(), &[Cast::Hoarders]);
    await_that("it holds both", || turns_of(&crew, 0).len() == 2);
    crew.workers[0].freeze();
    let client = leasehold::blocking::connect(&server.url()).unwrap();
    let book = client.rw_lock(BOOK);
    let reader = book.read().wait(SOON).acquire().unwrap();
    let read = Turn {
        lock: BOOK.into(),
        who: "reader".into(),
        hold: Hold::Read(reader.fencing_token().get()),
        from: now(),
        until: now(),
    };
    let writer = reader.try_upgrade().unwrap();
    let permits = client.semaphore(POOL, limit(POOL)).wait(SOON).acquire_many(limit(POOL)).unwrap();
    let slots: Vec<_> = permits.tokens().map(|(slot, token)| (slot, token.get())).collect();
    let own = [(BOOK, Hold::Write(writer.fencing_token().get())), (POOL, Hold::Permits(slots))];
    let own = own.map(|(lock, hold)| Turn { lock: lock.into(), who: "test".into(), hold, from: now(), until: now() });
    own.iter().for_each(|turn| crew.register.begin(&turn.lock, &turn.hold));

    crew.workers[0].thaw();
    let lost = || {
        let history = crew.history_of(0);
        history.iter().filter(|event| event.what == What::Ended(Ending::Lost)).count()
    };
    await_that("it learns of both losses", || lost() == 2);
    assert!(writer.check().is_ok() && permits.check().is_ok());
    let late: Vec<_> = crew.register.entries().into_iter().map(|entry| (entry.lock, entry.taken)).collect();
    let expected = [BOOK.to_owned(), format!("{POOL}#0"), format!("{POOL}#1"), format!("{POOL}#2")];
    assert_eq!(late.len(), expected.len(), "{late:?}");
    assert!(expected.into_iter().all(|resource| late.contains(&(resource, Taken::Refused))), "{late:?}");
    let turns = [turns_of(&crew, 0), vec![read], own.to_vec()].concat();
    let problems = exclusion(turns, Rules { losses: &[], ttl: TTL });
    drop((writer, permits));
    judge(crew, &problems);
}
