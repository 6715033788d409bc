//! Read-write locks as users have them: in either facade, over several clients, with several readers in one.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lock_core::{AcquireError, LossReason, Mode};
use lock_host::{Exclusive, LockOptions, Shared, Unchanged};

use crate::facade::options;
use crate::locks::{Guard, Lock, Waiter};
use crate::verbs::{BRIEF, LONG, in_mode, waiting_claim};
use crate::{Bench, Client};

fn long() -> LockOptions {
    options(LONG)
}

fn reader(client: &Client) -> Lock<Shared> {
    client.read("a", &long())
}

fn writer(client: &Client) -> Lock<Exclusive> {
    client.write("a", &long())
}

/// A client of this facade, and one of the other.
fn two_clients(bench: &Bench) -> [Client; 2] {
    [bench.client(), bench.client_of(bench.facade().other())]
}

/// Gives waiters time to ask the store, which must not serve them yet.
#[track_caller]
fn all_wait<M: 'static>(bench: &Bench, waiters: &[&Waiter<M>]) {
    (0..20).for_each(|_| bench.pause());
    assert!(!waiters.iter().any(|waiter| waiter.is_finished()), "it does not wait");
}

#[track_caller]
fn have_places(bench: &Bench, waiters: u32) {
    bench.have_places(waiters, || in_mode(Mode::Shared, waiting_claim("a")));
}

#[track_caller]
fn comes<M: 'static>(bench: &Bench, waiter: Waiter<M>) -> Guard<M> {
    bench.until("the waiter has it", || waiter.is_finished());
    waiter.outcome().unwrap()
}

/// Readers of one client and of others hold together, and no writer beside any of them.
pub fn readers_exclude_writers_and_not_each_other(bench: &Bench) {
    let clients @ [one, two] = &two_clients(bench);
    let guards = [reader(one), reader(one), reader(two), reader(one)].map(|lock| lock.acquire().unwrap());
    for guard in guards {
        for client in clients {
            assert!(writer(client).try_acquire().unwrap().is_none(), "a writer beside a reader");
        }
        guard.verify().unwrap();
        guard.release().unwrap();
    }
    let written = writer(two).try_acquire().unwrap().expect("all readers are gone");
    for client in clients {
        assert!(reader(client).try_acquire().unwrap().is_none(), "a reader beside a writer");
        assert!(writer(client).try_acquire().unwrap().is_none(), "a writer beside a writer");
    }
    let token = written.token();
    written.release().unwrap();
    assert!(reader(one).acquire().unwrap().token() > token);
}

/// The write side is the mutex of the same name.
pub fn a_mutex_is_the_write_side(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let guard = one.acquire("a", &long()).unwrap();
    assert!(reader(&two).try_acquire().unwrap().is_none() && reader(&one).try_acquire().unwrap().is_none());
    guard.release().unwrap();
    let _read = reader(&two).acquire().unwrap();
    assert!(one.try_acquire("a", &long()).unwrap().is_none());
}

/// On several threads of several clients, whatever their order: no writer is ever beside anybody.
pub fn racing_readers_and_writers_never_hold_together(bench: &Bench) {
    let ([one, two], inside) = (two_clients(bench), AtomicI64::new(0));
    /// More than there are readers.
    const WRITER: i64 = 1000;
    /// Long enough to meet others that get in meanwhile.
    const INSIDE: Duration = Duration::from_millis(1);
    let works = |client: &Client, turn: usize| {
        for turn in turn..turn + 4 {
            if turn % 3 == 0 {
                let guard = writer(client).acquire().unwrap();
                assert_eq!(inside.fetch_add(WRITER, Ordering::SeqCst), 0, "a writer beside somebody");
                std::thread::sleep(INSIDE);
                inside.fetch_sub(WRITER, Ordering::SeqCst);
                guard.release().unwrap();
            } else {
                let guard = reader(client).acquire().unwrap();
                assert!(inside.fetch_add(1, Ordering::SeqCst) < WRITER, "a reader beside a writer");
                std::thread::sleep(INSIDE);
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        let works = &works;
        let threads: Vec<_> = [&one, &two, &one, &two, &one, &two]
            .into_iter()
            .enumerate()
            .map(|(turn, client)| scope.spawn(move || works(client, turn)))
            .collect();
        bench.until("all have had their turns", || threads.iter().all(|thread| thread.is_finished()));
    });
}

/// A writer that waits is not overtaken by readers who come later, and they go on when it is done.
pub fn a_writer_that_waits_is_before_later_readers(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let first = reader(&one).acquire().unwrap();
    let waits = writer(&two).wait();
    have_places(bench, 1);
    let later = reader(&bench.client()).wait();
    all_wait(bench, &[&later]);
    first.release().unwrap();
    let written = comes(bench, waits);
    all_wait(bench, &[&later]);
    let token = written.token();
    written.release().unwrap();
    assert!(comes(bench, later).token() > token);
}

/// The only reader becomes the writer under a higher token, and is one at the store.
pub fn the_only_reader_becomes_the_writer(bench: &Bench) {
    let clients @ [one, two] = &two_clients(bench);
    let read = reader(one).acquire().unwrap();
    let token = read.token();
    let written = read.try_upgrade().unwrap();
    assert!(written.token() > token);
    written.verify().unwrap();
    for client in clients {
        assert!(reader(client).try_acquire().unwrap().is_none(), "a reader beside a writer");
    }
    written.release().unwrap();
    assert!(writer(two).try_acquire().unwrap().is_some(), "it is free");
}

/// Beside another reader, in the same client or elsewhere, the reader stays one: its guard comes back and is good.
pub fn a_reader_beside_others_stays_one(bench: &Bench) {
    let clients @ [one, _] = &two_clients(bench);
    for client in clients {
        let (mine, other) = (reader(one).acquire().unwrap(), reader(client).acquire().unwrap());
        let refused = mine.try_upgrade().expect_err("somebody else reads");
        assert!(matches!(refused.reason(), Unchanged::Busy(_)), "{:?}", refused.reason());
        [refused.guard(), &other].into_iter().for_each(|guard| guard.verify().unwrap());
        refused.into_guard().release().unwrap();
        assert!(writer(one).try_acquire().unwrap().is_none(), "the other reads on");
        other.try_upgrade().expect("it is alone now").release().unwrap();
    }
    assert!(writer(one).try_acquire().unwrap().is_some(), "nothing is left");
}

/// A writer that becomes a reader lets the readers in who wait, and no writer.
pub fn a_downgrade_lets_readers_in_and_no_writer(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let written = writer(&one).acquire().unwrap();
    let (token, waits) = (written.token(), reader(&two).wait());
    have_places(bench, 1);
    let next = writer(&bench.client()).wait();
    have_places(bench, 2);
    let read = written.downgrade().unwrap();
    assert!(read.token() > token);
    let other = comes(bench, waits);
    [&read, &other].into_iter().for_each(|guard| guard.verify().unwrap());
    all_wait(bench, &[&next]);
    read.release().unwrap();
    all_wait(bench, &[&next]);
    other.release().unwrap();
    comes(bench, next).release().unwrap();
}

/// A guard can be changed again and again; each is one hold.
pub fn a_hold_is_changed_again_and_again(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let mut written = writer(&one).acquire().unwrap();
    for _ in 0..3 {
        let read = written.downgrade().unwrap();
        reader(&two).try_acquire().unwrap().expect("all may read").release().unwrap();
        written = read.try_upgrade().unwrap();
        assert!(reader(&two).try_acquire().unwrap().is_none());
    }
    written.release().unwrap();
    assert!(writer(&two).try_acquire().unwrap().is_some());
}

/// A changed hold is renewed like any other.
pub fn a_changed_hold_is_renewed(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let ttl = Duration::from_secs(6);
    let read = one.write("a", &options(ttl)).acquire().unwrap().downgrade().unwrap();
    bench.keep(&read, ttl, ttl * 4 / 3);
    assert!(writer(&two).try_acquire().unwrap().is_none(), "taken from its holder");
    let written = read.try_upgrade().unwrap();
    bench.keep(&written, ttl, ttl * 4 / 3);
    assert!(reader(&two).try_acquire().unwrap().is_none(), "taken from its holder");
    // A release says whether it was answered within a part of the short ttl.
    drop(written);
}

/// Readers learn of the loss of their lease, and those of other clients read on.
pub fn a_reader_learns_of_its_loss(bench: &Bench) {
    let ([one, two], operator) = (two_clients(bench), bench.bystander());
    if !operator.can_inspect() {
        return;
    }
    let lock = one.read("a", &options(BRIEF));
    let (mine, other) = ([lock.acquire().unwrap(), lock.acquire().unwrap()], reader(&two).acquire().unwrap());
    operator.revoke("a", mine[0].token());
    for guard in mine {
        bench.until("the loss is told", || guard.lost().is_some());
        guard.check().expect_err("it is lost");
        let refused = guard.try_upgrade().expect_err("it is lost");
        assert!(matches!(refused.reason(), Unchanged::Lost(_)), "{:?}", refused.reason());
        refused.into_guard().release().expect_err("it is lost");
    }
    other.verify().unwrap();
    other.release().unwrap();
    assert!(writer(&two).try_acquire().unwrap().is_some());
}

/// Closing a client ends its readers, and leaves nothing behind.
pub fn closing_ends_readers(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let (guards, waits) = ([reader(&one), reader(&one)].map(|lock| lock.acquire().unwrap()), writer(&one).wait());
    all_wait(bench, &[&waits]);
    one.close();
    for guard in guards {
        assert_eq!(guard.lost().map(|lost| lost.reason), Some(LossReason::Closed));
    }
    assert!(matches!(waits.outcome(), Err(AcquireError::Closed)));
    assert!(writer(&two).try_acquire().unwrap().is_some(), "something is left");
}
