use super::*;
use crate::{Capabilities, Durability, Effect, ErrorKind, Operation, Slots, Terms, TokenRange, Ttl, Waiting, Width};

const START: Moment = Moment::from_nanos(1_000_000_000_000);
const TTL: Duration = Duration::from_secs(30);

fn keeper() -> Keeper {
    Keeper::new(Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process)), 7)
}

fn lease(n: u8) -> Arc<Lease> {
    let tokens = TokenRange::above(u64::from(n), Width::ONE).unwrap();
    Arc::new(Lease {
        name: format!("lock {n}").parse().unwrap(),
        owner: Owner::from_random([n; 16]),
        tokens,
        terms: Terms::exclusive(Ttl::DEFAULT),
        slots: Slots::NONE,
    })
}

/// A lease that was asked for and granted for its ttl.
fn lasting(n: u8, ttl: Duration) -> (Arc<Lease>, Admission) {
    let terms = Terms::exclusive(Ttl::new(ttl).unwrap());
    (Arc::new(Lease { terms, ..Lease::clone(&lease(n)) }), Admission { at: START, asked_at: START, valid_for: ttl })
}

fn keeping(leases: u8) -> Keeper {
    let mut keeper = keeper();
    for n in 0..leases {
        let (lease, admission) = lasting(n, TTL);
        keeper.start(lease, admission);
    }
    keeper
}

/// Admitted two seconds after the waiter had asked for its place.
const HANDED_OVER: Admission =
    Admission { at: START, asked_at: Moment::from_nanos(998_000_000_000), valid_for: Duration::from_secs(10) };

fn error() -> BackendError {
    BackendError::new("test", Operation::Renew, ErrorKind::Unreachable, Effect::None, "gone")
}

fn seconds(n: u64) -> Moment {
    START + Duration::from_secs(n)
}

#[test]
fn a_lease_is_renewed_at_a_third_of_its_validity() {
    let mut keeper = keeping(1);
    assert!(keeper.take_due(seconds(9)).is_none());
    let due = keeper.next_due().unwrap();
    assert!(due >= seconds(9) && due <= seconds(10), "{due:?}");
    let batch = keeper.take_due(seconds(10)).unwrap();
    assert_eq!((batch.leases.len(), batch.asked_at, batch.within), (1, seconds(10), Duration::from_secs(1)));
    assert_eq!(keeper.next_due(), None);
    assert_eq!(keeper.lateness().last, seconds(10).since(due));
}

#[test]
fn lateness_is_that_of_sending_the_last_and_the_latest_batch() {
    let mut keeper = keeping(1);
    assert_eq!(keeper.lateness(), Lateness::default());
    let due = keeper.next_due().unwrap();
    let batch = keeper.take_due(due + Duration::from_secs(2)).unwrap();
    assert_eq!(keeper.lateness(), Lateness { last: Duration::from_secs(2), max: Duration::from_secs(2) });
    keeper.answered(seconds(20), batch, Ok(vec![Renewed::Renewed { valid_for: TTL, wanted: false }]));
    assert_eq!(keeper.lateness().last, Duration::from_secs(2), "what the store takes is not in it");
    let due = keeper.next_due().unwrap();
    keeper.take_due(due).unwrap();
    assert_eq!(keeper.lateness(), Lateness { last: Duration::ZERO, max: Duration::from_secs(2) });
}

#[test]
fn nothing_is_due_before_the_soonest() {
    let (one, admission) = lasting(1, TTL);
    assert_eq!(Keeper::soonest_due(&one, admission), seconds(9), "a third, less a thirtieth for jitter");
    assert_eq!(Keeper::soonest_due(&one, Admission { valid_for: Duration::ZERO, ..admission }), START + PAUSE_MIN);
    let mut keeper = keeper();
    for n in 1..200 {
        let ttl = Duration::from_millis(100 * u64::from(n));
        for (lease, admission) in [lasting(n, ttl), (lease(n), HANDED_OVER), (lasting(n, ttl).0, HANDED_OVER)] {
            let soonest = Keeper::soonest_due(&lease, admission);
            keeper.start(Arc::clone(&lease), admission);
            assert!(keeper.next_due().unwrap() >= soonest);
            keeper.stop(lease.owner);
        }
    }
}

#[test]
fn a_lease_that_was_handed_over_for_less_than_its_ttl_is_renewed_soon_over_the_connection_in_use() {
    let mut keeper = keeper();
    keeper.start(lease(1), HANDED_OVER);
    assert_eq!(keeper.next_due(), Some(START + Duration::from_millis(100)));
    assert_eq!(Keeper::soonest_due(&lease(1), HANDED_OVER), keeper.next_due().unwrap());
    assert!(keeper.take_due(START + Duration::from_millis(99)).is_none(), "most holds have ended by then");
    let first = keeper.take_due(START + Duration::from_millis(100)).unwrap();
    assert_eq!((first.leases.len(), first.via), (1, Via::InUse));
    let asked_at = first.asked_at;
    keeper.answered(START, first, Ok(vec![Renewed::Renewed { valid_for: TTL, wanted: false }]));
    let due = keeper.next_due().unwrap();
    assert!(due >= asked_at + TTL / 3 - TTL / 30 && due <= asked_at + TTL / 3, "{due:?}");
    assert_eq!(keeper.take_due(due).unwrap().via, Via::Own);
}

#[test]
fn a_first_renewal_that_fails_is_retried_over_the_connection_of_the_keeper() {
    let mut keeper = keeper();
    keeper.start(lease(1), HANDED_OVER);
    let first = keeper.take_due(seconds(1)).unwrap();
    keeper.answered(seconds(2), first, Err(error()));
    let due = keeper.next_due().unwrap();
    assert!(due > seconds(2) && due <= seconds(3), "{due:?}");
    assert_eq!(keeper.take_due(due).unwrap().via, Via::Own);
}

#[test]
fn a_lease_that_was_granted_for_its_ttl_is_first_renewed_as_usual_however_old_its_grant_is() {
    let ttl = Duration::from_secs(10);
    let mut keeper = keeper();
    keeper.start(lasting(1, ttl).0, HANDED_OVER);
    let due = keeper.next_due().unwrap();
    assert!(due >= seconds(1) - Duration::from_millis(1) && due <= seconds(2), "a third of it since it was asked for");
    assert_eq!(keeper.take_due(due).unwrap().via, Via::Own);
}

#[test]
fn renewals_over_different_connections_go_out_by_themselves() {
    let mut keeper = keeping(3);
    let (asked_at, at) = (START, seconds(9));
    keeper.start(lease(3), Admission { at, asked_at, valid_for: Duration::from_secs(10) });
    let batches: Vec<_> = std::iter::from_fn(|| keeper.take_due(seconds(10))).collect();
    let mut sizes: Vec<_> = batches.iter().map(|batch| (batch.leases.len(), batch.via == Via::Own)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [(1, false), (3, true)]);
}

#[test]
fn an_answered_renewal_counts_from_asking() {
    let mut keeper = keeping(1);
    let batch = keeper.take_due(seconds(10)).unwrap();
    let renewals = keeper.answered(seconds(11), batch, Ok(vec![Renewed::Renewed { valid_for: TTL, wanted: false }]));
    assert!(matches!(renewals[0].answer, Ok(Renewed::Renewed { .. })));
    assert_eq!(renewals[0].asked_at, seconds(10));
    let due = keeper.next_due().unwrap();
    assert!(due >= seconds(19) && due <= seconds(20), "{due:?}");
}

#[test]
fn what_is_due_together_goes_out_together_in_bounded_batches() {
    let mut keeper = keeping(250);
    let late = seconds(60);
    let sizes: Vec<_> = std::iter::from_fn(|| keeper.take_due(late)).map(|batch| batch.leases.len()).collect();
    assert_eq!(sizes, [100, 100, 50]);
    assert_eq!(keeper.len(), 250);
}

#[test]
fn an_error_is_retried_soon_and_told() {
    let mut keeper = keeping(1);
    let batch = keeper.take_due(seconds(10)).unwrap();
    let error = error();
    let renewals = keeper.answered(seconds(11), batch, Err(error));
    assert!(renewals[0].answer.is_err());
    let due = keeper.next_due().unwrap();
    assert!(due > seconds(11) && due <= seconds(12), "{due:?}");
}

#[test]
fn a_short_lease_is_retried_sooner() {
    let mut keeper = keeper();
    let (lease, admission) = lasting(1, Duration::from_secs(3));
    keeper.start(lease, admission);
    assert!(!keeper.is_empty());
    let batch = keeper.take_due(seconds(1)).unwrap();
    keeper.answered(seconds(1), batch, Ok(vec![Renewed::Unsure(error())]));
    assert!(keeper.next_due().unwrap().since(seconds(1)) <= Duration::from_millis(100), "a thirtieth of the validity");
}

#[test]
fn a_lost_lease_is_told_and_not_renewed_again() {
    let mut keeper = keeping(2);
    let batch = keeper.take_due(seconds(10)).unwrap();
    assert_eq!(batch.leases.len(), 2);
    let answers = vec![Renewed::NotHeld, Renewed::Renewed { valid_for: TTL, wanted: false }];
    let renewals = keeper.answered(seconds(10), batch, Ok(answers));
    assert!(matches!(renewals[0].answer, Ok(Renewed::NotHeld)));
    assert_eq!(keeper.len(), 1);
}

#[test]
fn a_lease_that_was_let_go_in_flight_stays_gone() {
    let mut keeper = keeping(1);
    let batch = keeper.take_due(seconds(10)).unwrap();
    keeper.stop(batch.leases[0].owner);
    keeper.answered(seconds(10), batch, Ok(vec![Renewed::Renewed { valid_for: TTL, wanted: false }]));
    assert!(keeper.is_empty() && keeper.next_due().is_none());
}

#[test]
fn a_lease_that_is_kept_anew_has_one_renewal_only() {
    let mut keeper = keeping(1);
    let batch = keeper.take_due(seconds(10)).unwrap();
    for _ in 0..2 {
        keeper.start(lease(0), Admission { at: seconds(10), asked_at: seconds(10), valid_for: TTL });
    }
    keeper.answered(seconds(10), batch, Ok(vec![Renewed::Renewed { valid_for: TTL, wanted: false }]));
    assert_eq!(std::iter::from_fn(|| keeper.take_due(seconds(20))).count(), 1);
    assert_eq!(keeper.next_due(), None);
}

#[test]
fn a_hastened_renewal_is_sent_at_once_even_while_another_is_in_flight() {
    let mut keeper = keeping(1);
    let renewed = || Ok(vec![Renewed::Renewed { valid_for: TTL, wanted: false }]);
    keeper.renew_now(seconds(2), lease(0).owner);
    let first = keeper.take_due(seconds(2)).unwrap();
    keeper.renew_now(seconds(3), lease(0).owner);
    assert_eq!(keeper.next_due(), Some(seconds(3)));
    keeper.answered(seconds(3), first, renewed());
    let second = keeper.take_due(seconds(3)).unwrap();
    assert_eq!((second.asked_at, keeper.lateness().max), (seconds(3), Duration::ZERO));
    keeper.answered(seconds(3), second, renewed());
    assert!(keeper.next_due().unwrap() > seconds(11), "the next one is due as usual");
    keeper.renew_now(seconds(3), lease(1).owner);
    assert_eq!(keeper.len(), 1, "a lease that is not renewed stays so");
}

#[test]
fn the_answer_of_a_renewal_that_was_overtaken_leaves_nothing_due() {
    let mut keeper = keeping(1);
    keeper.renew_now(seconds(2), lease(0).owner);
    let first = keeper.take_due(seconds(2)).unwrap();
    keeper.renew_now(seconds(3), lease(0).owner);
    keeper.answered(seconds(3), first, Ok(vec![Renewed::Renewed { valid_for: TTL, wanted: false }]));
    keeper.stop(lease(0).owner);
    assert_eq!((keeper.next_due(), keeper.len()), (None, 0));
}

#[test]
fn an_answer_that_is_too_short_is_tried_again() {
    let mut keeper = keeping(1);
    let batch = keeper.take_due(seconds(10)).unwrap();
    assert!(keeper.answered(seconds(10), batch, Ok(Vec::new())).is_empty());
    assert!(keeper.next_due().unwrap() <= seconds(11));
}

#[test]
fn an_answer_of_another_length_says_nothing_of_any_lease() {
    for length in [1, 3] {
        let mut keeper = keeping(2);
        let batch = keeper.take_due(seconds(10)).unwrap();
        assert!(keeper.answered(seconds(10), batch, Ok(vec![Renewed::NotHeld; length])).is_empty());
        assert_eq!(keeper.len(), 2);
        assert!(keeper.next_due().unwrap() <= seconds(11));
    }
}

#[test]
fn leases_that_allow_less_time_go_out_by_themselves() {
    let mut keeper = keeping(1);
    for (lease, admission) in [lasting(1, Duration::from_millis(100)), lasting(2, TTL)] {
        keeper.start(lease, admission);
    }
    let batches: Vec<_> = std::iter::from_fn(|| keeper.take_due(seconds(10))).collect();
    let sizes: Vec<_> = batches.iter().map(|batch| (batch.leases.len(), batch.within.as_millis())).collect();
    assert_eq!(sizes, [(1, 16), (2, 1000)]);
}

#[test]
fn a_validity_of_nothing_is_not_renewed_without_a_pause() {
    let mut keeper = keeping(1);
    let nothing = Renewed::Renewed { valid_for: Duration::ZERO, wanted: false };
    let error = error();
    for answer in [Ok(vec![nothing]), Err(error)] {
        let now = seconds(10).max(keeper.next_due().unwrap());
        let batch = keeper.take_due(now).unwrap();
        keeper.answered(now, batch, answer);
        assert!(keeper.next_due().unwrap().since(now) >= Duration::from_millis(5));
    }
}
