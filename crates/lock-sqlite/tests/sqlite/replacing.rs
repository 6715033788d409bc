//! A lease in place of another one: downgrades, upgrades, fewer permits.

use lock_core::{BlockingBackend, Claim, ErrorKind, Fenced, Released, Renewed};

use crate::rig::{Ask, Rig, WITHIN, at_once, busy, claim, granted, impatient, low, permits, position, reader};

/// A claim in place of the lease of another.
fn replacing(old: &Claim, new: Claim) -> Claim {
    Claim { replaces: Some(old.owner), ..at_once(new) }
}

#[test]
fn a_writer_becomes_a_reader_and_lets_the_readers_behind_it_in() {
    let rig = Rig::new();
    let client = rig.client();
    let (writer, readers, next) = (claim("a"), [reader("a"), reader("a")], claim("a"));
    let before = granted(client.ask(&writer));
    readers.iter().for_each(|reader| assert!(position(client.ask(reader)) > 0));
    position(client.ask(&next));
    let down = replacing(&writer, reader("a"));
    let lease = granted(client.ask(&down));
    assert!(low(&lease) > low(&before));
    assert_eq!(granted(client.ask(&down)), lease, "asked again");
    readers.iter().for_each(|reader| drop(granted(client.ask(reader))));
    assert_eq!(position(client.ask(&next)), 1);
    assert_eq!((client.extend(&before), client.part(&writer)), (Renewed::NotHeld, Released::NotHeld));
    assert_eq!(client.refusal(&writer).kind(), ErrorKind::Protocol);
    assert_eq!(client.fence(&lease, WITHIN).unwrap(), Fenced::Acknowledged);
    assert_eq!([&down, &readers[0], &readers[1]].map(|reader| client.part(reader)), [Released::Released; 3]);
    granted(client.ask(&next));
}

#[test]
fn the_only_reader_becomes_a_writer_and_one_of_two_stays_a_reader() {
    let rig = Rig::new();
    let client = rig.client();
    let (one, two, waiter) = (reader("a"), reader("a"), claim("a"));
    let leases = [&one, &two].map(|reader| granted(client.ask(reader)));
    position(client.ask(&waiter));
    let up = replacing(&one, claim("a"));
    busy(client.ask(&up));
    leases.iter().for_each(|lease| assert!(matches!(client.extend(lease), Renewed::Renewed { .. })));
    client.part(&two);
    let lease = granted(client.ask(&up));
    assert!(low(&lease) > low(&leases[1]));
    assert_eq!(granted(client.ask(&up)), lease, "asked again");
    assert_eq!((client.extend(&leases[0]), position(client.ask(&waiter))), (Renewed::NotHeld, 1));
    busy(client.ask(&at_once(reader("a"))));
    assert_eq!(client.part(&up), Released::Released);
    granted(client.ask(&waiter));
    assert_eq!(client.extend(&leases[0]), Renewed::NotHeld);
}

#[test]
fn some_permits_are_given_back_and_the_first_slots_stay() {
    let rig = Rig::new();
    let client = rig.client();
    let (three, waiter, behind) = (permits("a", 3, 3), permits("a", 2, 3), permits("a", 1, 3));
    let before = granted(client.ask(&three));
    position(client.ask(&waiter));
    position(client.ask(&behind));
    assert_eq!(client.refusal(&replacing(&three, permits("a", 1, 4))).kind(), ErrorKind::OtherKind);
    let less = replacing(&three, permits("a", 1, 3));
    let lease = granted(client.ask(&less));
    assert_eq!((lease.slots.get(), lease.tokens.width().get()), (&[0][..], 1));
    assert!(lease.tokens.low() > before.tokens.high());
    assert_eq!(granted(client.ask(&waiter)).slots.get(), [1, 2]);
    assert_eq!(position(client.ask(&behind)), 1);
    assert_eq!(client.extend(&before), Renewed::NotHeld);
    client.part(&less);
    assert_eq!(granted(client.ask(&behind)).slots.get(), [0]);
}

#[test]
fn a_reader_and_permits_go_on_under_another_owner() {
    let rig = Rig::new();
    let client = rig.client();
    let (one, two, writer) = (reader("a"), reader("a"), claim("a"));
    let leases = [&one, &two].map(|reader| granted(client.ask(reader)));
    position(client.ask(&writer));
    let next = replacing(&one, reader("a"));
    let lease = granted(client.ask(&next));
    assert!(low(&lease) > low(&leases[1]));
    assert_eq!(granted(client.ask(&next)), lease, "asked again");
    assert_eq!(client.refusal(&replacing(&one, reader("a"))).kind(), ErrorKind::NotHeld);
    assert_eq!((client.extend(&leases[0]), position(client.ask(&writer))), (Renewed::NotHeld, 1));
    assert_eq!([&two, &next].map(|reader| client.part(reader)), [Released::Released; 2]);
    granted(client.ask(&writer));

    let (one, two, waiter) = (permits("b", 1, 3), permits("b", 2, 3), permits("b", 3, 3));
    let before = [&one, &two].map(|permits| granted(client.ask(permits)))[1].clone();
    position(client.ask(&waiter));
    let next = replacing(&two, permits("b", 2, 3));
    let after = granted(client.ask(&next));
    assert_eq!((after.slots.get(), before.slots.get()), (&[1, 2][..], &[1, 2][..]));
    assert!(after.tokens.low() > before.tokens.high());
    assert_eq!(client.part(&one), Released::Released);
    assert_eq!(position(client.ask(&waiter)), 1);
    assert_eq!(client.part(&next), Released::Released);
    assert_eq!(granted(client.ask(&waiter)).slots.get(), [0, 1, 2]);
}

#[test]
fn other_replacements_are_refused_and_change_nothing() {
    let rig = Rig::new();
    let client = rig.client();
    let old = reader("a");
    assert_eq!(client.refusal(&replacing(&old, claim("a"))).kind(), ErrorKind::NotHeld);
    let lease = granted(client.ask(&old));
    assert_eq!(client.refusal(&replacing(&old, permits("a", 1, 2))).kind(), ErrorKind::OtherKind);
    assert_eq!(client.fence(&lease, WITHIN).unwrap(), Fenced::Acknowledged);
    busy(client.ask(&impatient("a")));
}
