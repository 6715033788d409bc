//! Several holds of one name: readers and permits, in a queue with writers.

use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, Fenced, Holder, Lease, Mode, Queueing, ReleaseRequest, Released,
    Renewed, StoreEvent, Terms, Ttl, Width,
};
use lock_memory::store::{Notice, Store};

use crate::support::*;

fn in_mode(mode: Mode, claim: Claim) -> Claim {
    let terms = Terms { mode, ..claim.terms };
    Claim { terms, width: Width::for_waiters(mode.count() as usize), ..claim }
}

fn reader(byte: u8) -> Claim {
    in_mode(Mode::Shared, claim(byte))
}

fn permits(byte: u8, count: u32) -> Claim {
    in_mode(Mode::permits(count, 4).unwrap(), claim(byte))
}

fn lasting(seconds_long: u64, claim: Claim) -> Claim {
    let terms = Terms { ttl: Ttl::new(seconds(seconds_long)).unwrap(), ..claim.terms };
    Claim { terms, ..claim }
}

fn replacing(old: u8, claim: Claim) -> Claim {
    Claim { replaces: Some(owner(old)), queueing: Queueing::Unwanted, ..claim }
}

fn take(store: &mut Store, time: u64, claim: &Claim) -> Lease {
    granted(store.acquire(at(time), ONE, claim).unwrap()).0
}

fn waits(store: &mut Store, time: u64, claim: &Claim) -> u32 {
    position(store.acquire(at(time), TWO, claim).unwrap())
}

fn refused(store: &mut Store, time: u64, claim: &Claim) -> BackendError {
    store.acquire(at(time), TWO, claim).unwrap_err()
}

/// The owners, in the order in which they were served.
fn served(store: &mut Store) -> Vec<lock_core::Owner> {
    hand_overs(store).into_iter().map(|served| served.lease.owner).collect()
}

fn release(store: &mut Store, time: u64, byte: u8) -> Released {
    store.release(at(time), &release_of(byte)).unwrap()
}

#[test]
fn readers_hold_together_and_a_writer_waits_for_all_of_them() {
    let mut store = Store::new();
    let leases = [1, 2, 3].map(|byte| take(&mut store, 0, &reader(byte)));
    assert_eq!(leases.each_ref().map(tokens), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(waits(&mut store, 1, &claim(4)), 1);
    assert_eq!(waits(&mut store, 1, &reader(5)), 2, "it does not overtake the writer");
    [1, 3].into_iter().for_each(|byte| assert_eq!(release(&mut store, 2, byte), Released::Released));
    assert_eq!(served(&mut store), []);
    assert_eq!(store.fence(at(2), &leases[1]), Fenced::Acknowledged);
    release(&mut store, 2, 2);
    assert_eq!(served(&mut store), [owner(4)]);
    release(&mut store, 3, 4);
    assert_eq!(served(&mut store), [owner(5)]);
}

#[test]
fn each_reader_ends_at_its_own_end_and_the_answer_names_the_last() {
    let mut store = Store::new();
    take(&mut store, 0, &lasting(20, reader(1)));
    let lease = take(&mut store, 0, &reader(2));
    take(&mut store, 0, &lasting(5, reader(3)));
    let Answer::Busy { remaining, holder, .. } = store.acquire(at(1), TWO, &try_claim(4)).unwrap() else { panic!() };
    let last = Holder::Leasehold { tokens: lease.tokens, note: reader(2).note };
    assert_eq!((remaining, holder), (Some(seconds(29)), last));
    let owners = |store: &Store, time| store.holds(at(time), &lease.name).map(|hold| hold.owner).collect::<Vec<_>>();
    assert_eq!(owners(&store, 6), [owner(2), owner(1)]);
    assert_eq!(owners(&store, 20), [owner(2)]);
    assert_eq!(store.renew(at(29), std::slice::from_ref(&lease)).len(), 1);
    assert_eq!(owners(&store, 58), [owner(2)]);
}

#[test]
fn one_release_serves_all_the_readers_at_the_head() {
    let mut store = Store::new();
    take(&mut store, 0, &claim(1));
    [reader(2), reader(3), claim(4), reader(5)].iter().for_each(|claim| _ = waits(&mut store, 0, claim));
    release(&mut store, 1, 1);
    let hand_overs = hand_overs(&mut store);
    assert_eq!(hand_overs.iter().map(|each| tokens(&each.lease)).collect::<Vec<_>>(), [(2, 2), (3, 3)]);
    assert!(hand_overs.iter().all(|each| each.wanted && each.lease.terms.mode == Mode::Shared));
}

#[test]
fn nobody_is_said_to_wait_who_is_served_in_the_same_visit() {
    let mut store = Store::new();
    take(&mut store, 0, &claim(1));
    [reader(2), reader(3)].iter().for_each(|claim| _ = waits(&mut store, 0, claim));
    let answer = store.acquire(at(1), ONE, &replacing(1, reader(9))).unwrap();
    assert!(matches!(answer, Answer::Granted { wanted: false, .. }), "{answer:?}");
    assert!(hand_overs(&mut store).iter().all(|each| !each.wanted));
}

#[test]
fn a_writer_that_leaves_the_head_lets_the_readers_behind_it_in() {
    for queueing in [Queueing::Wanted, Queueing::Unwanted] {
        let mut store = Store::new();
        take(&mut store, 0, &reader(1));
        waits(&mut store, 0, &claim(2));
        waits(&mut store, 0, &reader(3));
        match queueing {
            Queueing::Wanted => assert_eq!(release(&mut store, 1, 2), Released::Left),
            Queueing::Unwanted => {
                let answer = store.acquire(at(1), TWO, &try_claim(2)).unwrap();
                assert!(matches!(answer, Answer::Busy { .. }), "{answer:?}");
            }
        }
        assert_eq!(served(&mut store), [owner(3)], "{queueing:?}");
    }
}

#[test]
fn a_writer_whose_place_is_over_no_longer_holds_readers_up() {
    let mut store = Store::new();
    take(&mut store, 0, &reader(1));
    waits(&mut store, 0, &claim(2));
    waits(&mut store, 5, &reader(3));
    take(&mut store, 10, &reader(4));
    assert_eq!(served(&mut store), [owner(3)]);
}

#[test]
fn a_visit_serves_32_and_tells_the_next_to_ask() {
    let mut store = Store::new();
    take(&mut store, 0, &claim(1));
    (2..42).for_each(|byte| _ = waits(&mut store, 0, &reader(byte)));
    hints(&mut store);
    release(&mut store, 1, 1);
    let notices = store.take_notices();
    let (hint, grants) = notices.split_last().unwrap();
    let granted_to =
        |notice: &Notice| matches!(&notice.event, StoreEvent::Granted { lease, .. } if lease.owner != owner(1));
    assert!(grants.len() == 32 && grants.iter().all(granted_to), "{grants:?}");
    let name = name("invoice:42");
    assert_eq!(*hint, Notice { client: TWO, event: StoreEvent::Freed { name } });
    take(&mut store, 1, &reader(34));
    assert_eq!(served(&mut store), (35..42).map(owner).collect::<Vec<_>>(), "the rest, with the next request");
}

#[test]
fn permits_take_the_lowest_free_slots_and_as_many_tokens() {
    let mut store = Store::new();
    let leases = [(1, 1), (2, 2), (3, 1)].map(|(byte, count)| take(&mut store, 0, &permits(byte, count)));
    assert_eq!(leases.each_ref().map(|lease| lease.slots.get()), [&[0][..], &[1, 2], &[3]]);
    assert_eq!(leases.each_ref().map(tokens), [(1, 1), (2, 3), (4, 4)]);
    assert_eq!(take(&mut store, 1, &permits(2, 2)), leases[1], "asked again");
    let Answer::Busy { remaining, .. } =
        store.acquire(at(1), TWO, &Claim { queueing: Queueing::Unwanted, ..permits(4, 2) }).unwrap()
    else {
        panic!("there are none left")
    };
    assert_eq!(remaining, Some(seconds(29)), "two of the three leases have ended by then");
    release(&mut store, 2, 3);
    release(&mut store, 2, 1);
    assert_eq!(take(&mut store, 2, &permits(4, 2)).slots.get(), [0, 3]);
}

#[test]
fn a_large_request_at_the_head_is_not_overtaken() {
    let mut store = Store::new();
    take(&mut store, 0, &permits(1, 2));
    take(&mut store, 0, &permits(2, 1));
    assert_eq!(waits(&mut store, 0, &permits(3, 3)), 1);
    assert_eq!(waits(&mut store, 0, &permits(4, 1)), 2, "although it would fit");
    release(&mut store, 1, 2);
    assert_eq!(served(&mut store), []);
    release(&mut store, 1, 1);
    let hand_overs = hand_overs(&mut store);
    let slots: Vec<_> = hand_overs.iter().map(|served| served.lease.slots.get().to_vec()).collect();
    assert_eq!(slots, [vec![0, 1, 2], vec![3]]);
}

#[test]
fn a_name_is_used_as_one_kind_and_with_one_limit_at_a_time() {
    let mut store = Store::new();
    let of_five = in_mode(Mode::permits(1, 5).unwrap(), claim(2));
    take(&mut store, 0, &permits(1, 1));
    for claim in [&claim(2), &reader(2), &of_five] {
        let error = refused(&mut store, 0, claim);
        assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{error}");
        assert!(error.to_string().contains("in use as a semaphore of limit 4, not as a"), "{error}");
    }
    release(&mut store, 1, 1);
    assert_eq!(take(&mut store, 1, &of_five).slots.get(), [0]);
    assert!(refused(&mut store, 30, &permits(1, 1)).to_string().contains("of limit 5, not as a semaphore of limit 4"));
    assert_eq!(take(&mut store, 31, &permits(1, 1)).slots.get(), [0], "it has expired");
}

#[test]
fn an_owner_has_one_mode() {
    let mut store = Store::new();
    take(&mut store, 0, &reader(1));
    assert_eq!(refused(&mut store, 1, &claim(1)).kind(), ErrorKind::Protocol);
    assert_eq!(waits(&mut store, 1, &claim(2)), 1, "it still reads");
}

#[test]
fn a_downgrade_lets_the_readers_at_the_head_in() {
    let mut store = Store::new();
    let old = take(&mut store, 0, &claim(1));
    [reader(2), claim(3), reader(4)].iter().for_each(|claim| _ = waits(&mut store, 0, claim));
    let new = take(&mut store, 1, &replacing(1, reader(9)));
    assert_eq!(refused(&mut store, 1, &claim(1)).kind(), ErrorKind::Protocol);
    assert_eq!((tokens(&new), new.terms.mode), ((2, 2), Mode::Shared));
    assert_eq!(served(&mut store), [owner(2)]);
    assert_eq!(store.renew(at(1), &[old, new.clone()])[0], Renewed::NotHeld);
    assert_eq!(take(&mut store, 2, &replacing(1, reader(9))), new, "asked again");
}

#[test]
fn an_upgrade_is_granted_to_the_only_reader_and_to_no_other() {
    let mut store = Store::new();
    let reading = take(&mut store, 0, &reader(1));
    let other = take(&mut store, 0, &reader(2));
    waits(&mut store, 0, &claim(3));
    let Answer::Busy { holder, .. } = store.acquire(at(1), ONE, &replacing(1, claim(9))).unwrap() else {
        panic!("it is not alone")
    };
    assert_eq!(holder, Holder::Leasehold { tokens: other.tokens, note: reader(2).note });
    assert_eq!(store.fence(at(1), &reading), Fenced::Acknowledged, "nothing has changed");
    assert_eq!(take(&mut store, 1, &reader(1)), reading, "and it was not given up");
    release(&mut store, 2, 2);
    assert_eq!(take(&mut store, 2, &replacing(1, claim(9))).terms.mode, Mode::Exclusive, "past the queue");
    assert_eq!(served(&mut store), []);
    release(&mut store, 3, 9);
    assert_eq!(served(&mut store), [owner(3)]);
}

#[test]
fn permits_are_given_back_in_part() {
    let mut store = Store::new();
    take(&mut store, 0, &permits(1, 4));
    waits(&mut store, 0, &permits(2, 3));
    let fewer = take(&mut store, 1, &replacing(1, permits(8, 2)));
    assert_eq!((fewer.slots.get(), tokens(&fewer)), (&[0, 1][..], (5, 6)));
    assert_eq!(served(&mut store), []);
    let fewer = take(&mut store, 1, &replacing(8, permits(9, 1)));
    assert_eq!((fewer.slots.get(), tokens(&fewer)), (&[0][..], (7, 7)));
    let next = hand_overs(&mut store).remove(0).lease;
    assert_eq!((next.owner, next.slots.get()), (owner(2), &[1, 2, 3][..]));
}

#[test]
fn a_reader_and_permits_go_on_under_another_owner() {
    let mut store = Store::new();
    let reads = [take(&mut store, 0, &reader(1)), take(&mut store, 0, &reader(2))];
    waits(&mut store, 0, &claim(3));
    let read = take(&mut store, 1, &replacing(1, reader(9)));
    assert!(read.tokens.low() > reads[1].tokens.high());
    assert_eq!(store.renew(at(1), &reads)[0], Renewed::NotHeld);
    assert_eq!(refused(&mut store, 1, &replacing(1, reader(8))).kind(), ErrorKind::NotHeld);
    assert_eq!((served(&mut store), waits(&mut store, 1, &claim(3))), (vec![], 1));
    let mut store = Store::new();
    take(&mut store, 0, &permits(1, 1));
    let before = take(&mut store, 0, &permits(2, 2));
    waits(&mut store, 0, &permits(3, 2));
    let after = take(&mut store, 1, &replacing(2, permits(9, 2)));
    assert_eq!((after.slots.get(), tokens(&after), tokens(&before)), (&[1, 2][..], (4, 5), (2, 3)));
    assert_eq!(served(&mut store), []);
}

#[test]
fn other_leases_are_not_replaced() {
    let mut store = Store::new();
    take(&mut store, 0, &permits(1, 2));
    assert_eq!(refused(&mut store, 1, &replacing(1, permits(9, 3))).kind(), ErrorKind::Protocol);
    assert_eq!(refused(&mut store, 1, &replacing(1, reader(9))).kind(), ErrorKind::OtherKind);
}

#[test]
fn only_an_exclusive_lease_is_kept() {
    let mut store = Store::new();
    take(&mut store, 0, &reader(1));
    let kept = ReleaseRequest { keep: Some(TTL), ..release_of(1) };
    let error = store.release(at(1), &kept).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
    assert_eq!(release(&mut store, 1, 1), Released::Released);
}

#[test]
fn every_holder_and_every_waiter_is_shown_and_revoked_alone() {
    let mut store = Store::new();
    take(&mut store, 0, &permits(1, 1));
    let two = take(&mut store, 5, &permits(2, 2));
    waits(&mut store, 5, &permits(3, 3));
    let entry = store.holder(at(6), &two.name).unwrap();
    let slots: Vec<_> = entry.holders.iter().map(|held| (held.slots.get().to_vec(), held.remaining)).collect();
    assert_eq!(slots, [(vec![1, 2], Some(seconds(29))), (vec![0], Some(seconds(24)))]);
    assert_eq!((entry.leases, entry.waiters, entry.queue[0].mode), (2, 1, permits(3, 3).terms.mode));
    assert_eq!(store.revoke(at(6), &two.name, two.tokens.high(), &operator()), lock_core::inspect::Revoked::Revoked);
    assert_eq!(served(&mut store), [owner(3)]);
    assert_eq!(store.holder(at(6), &two.name).unwrap().leases, 2);
}
