use super::*;
use crate::cast::POOL;

const TTL: Duration = Duration::from_nanos(100);
const LOSS: Loss = Loss { at: 1_000, watermark: 50, lock: None };

fn held(hold: Hold, from: u64, until: u64) -> Turn {
    Turn { lock: "hot".into(), who: format!("w{}", hold.token()), hold, since: from, from, until }
}

fn turn(token: u64, from: u64, until: u64) -> Turn {
    held(Hold::Write(token), from, until)
}

fn reader(token: u64, from: u64, until: u64) -> Turn {
    held(Hold::Read(token), from, until)
}

/// Of three permits.
fn permits(slots: &[(u32, u64)], from: u64, until: u64) -> Turn {
    held(Hold::Permits(slots.to_vec()), from, until)
}

fn judged(turns: &[Turn]) -> Vec<Problem> {
    exclusion(turns.to_vec(), Rules { losses: &[LOSS], changes: &[], ttl: TTL })
}

#[test]
fn turns_one_after_the_other_are_no_problem() {
    assert_eq!(judged(&[turn(2, 30, 40), turn(1, 10, 29), turn(3, 60, 60)]), []);
    let elsewhere = Turn { lock: "cold".into(), ..turn(1, 15, 25) };
    assert_eq!(judged(&[turn(2, 10, 20), elsewhere]), []);
}

#[test]
fn two_turns_at_once_are_found() {
    let problems = judged(&[turn(1, 10, 50), turn(2, 20, 25), turn(3, 40, 45)]);
    let pairs = [(1, 10, 50, 2, 20, 25), (1, 10, 50, 3, 40, 45)];
    let expected = pairs.map(|(a, b, c, d, e, f)| Problem::Overlap(turn(a, b, c), turn(d, e, f)));
    assert_eq!(problems, expected);
}

#[test]
fn tokens_that_do_not_rise_are_found() {
    assert_eq!(judged(&[turn(5, 1, 2), turn(4, 3, 4)]), [Problem::Order(turn(5, 1, 2), turn(4, 3, 4))]);
    assert_eq!(judged(&[turn(5, 1, 2), turn(5, 3, 4)]), [Problem::Order(turn(5, 1, 2), turn(5, 3, 4))]);
    // Even across a loss: here the later turn has the lower token.
    assert_eq!(judged(&[turn(60, 900, 950), turn(40, 2_000, 2_010)]).len(), 1);
}

#[test]
fn readers_are_together_and_never_beside_a_writer() {
    let [one, two, three] = [reader(5, 10, 50), reader(7, 20, 60), reader(5, 30, 40)];
    assert_eq!(judged(&[one.clone(), two.clone(), three.clone(), turn(8, 61, 70), reader(9, 71, 72)]), []);
    let writer = turn(8, 45, 46);
    let expected = [&one, &two].map(|reader| Problem::Overlap(reader.clone(), writer.clone()));
    assert_eq!(judged(&[one.clone(), two, three, writer]), expected);
    let later = reader(9, 15, 16);
    assert_eq!(judged(&[turn(4, 10, 20), later.clone()]), [Problem::Overlap(turn(4, 10, 20), later)]);
}

#[test]
fn a_token_of_a_reader_is_above_the_writers_before_it() {
    let below = |before: Turn, after: Turn| assert_eq!(judged(&[before.clone(), after.clone()]).len(), 1, "{after:?}");
    below(turn(5, 1, 2), reader(5, 3, 4));
    below(turn(5, 1, 2), reader(4, 3, 4));
    below(reader(5, 1, 2), turn(5, 3, 4));
    assert_eq!(judged(&[reader(5, 1, 2), reader(4, 3, 4)]), [], "readers share leases");
}

#[test]
fn slots_are_held_once_and_their_tokens_rise() {
    let together = [permits(&[(0, 5)], 10, 50), permits(&[(1, 4), (2, 7)], 20, 40)];
    assert_eq!(judged(&together), []);
    let same = permits(&[(2, 9)], 30, 35);
    let expected = [Problem::Overlap(together[1].clone(), same.clone()), Problem::TooMany(same.clone(), 4)];
    assert_eq!(judged(&[together[0].clone(), together[1].clone(), same]), expected);
    let later = permits(&[(2, 6)], 60, 61);
    let expected = [Problem::Order(together[1].clone(), later.clone())];
    assert_eq!(judged(&[together[0].clone(), together[1].clone(), later]), expected);
}

#[test]
fn more_permits_than_there_are_and_slots_beyond_them_are_found() {
    let beyond = permits(&[(3, 5)], 10, 20);
    assert_eq!(judged(std::slice::from_ref(&beyond)), [Problem::NoSuchSlot(beyond)]);
    let many = [permits(&[(0, 5), (1, 6)], 10, 50), permits(&[(2, 7)], 20, 60)];
    assert_eq!(judged(&many), []);
    let more = permits(&[(0, 8)], 30, 40);
    let expected = [Problem::Overlap(many[0].clone(), more.clone()), Problem::TooMany(more.clone(), 4)];
    assert_eq!(judged(&[many[0].clone(), many[1].clone(), more]), expected);
}

#[test]
fn after_a_loss_an_old_and_a_new_turn_may_overlap_until_the_old_lease_ends() {
    assert_eq!(judged(&[turn(40, 900, 1_100), turn(60, 1_010, 1_200)]), []);
    assert_eq!(judged(&[turn(40, 900, 1_101), turn(60, 1_010, 1_200)]).len(), 1, "too long");
    assert_eq!(judged(&[turn(51, 900, 1_100), turn(60, 1_010, 1_020)]).len(), 1, "both are new");
    assert_eq!(judged(&[turn(40, 900, 1_020), turn(49, 1_010, 1_020)]).len(), 1, "both are old");
    // An earlier grant whose answer came late.
    assert_eq!(judged(&[turn(60, 1_010, 1_015), turn(40, 1_020, 1_030)]), []);
    // The same with a reader, and with all permits.
    assert_eq!(judged(&[reader(40, 900, 1_100), turn(60, 1_010, 1_200)]), []);
    let all = |token: u64| [0, 1, 2].map(|slot| (slot, token + u64::from(slot)));
    assert_eq!(judged(&[permits(&all(40), 900, 1_100), permits(&all(60), 1_010, 1_200)]), []);
    assert_eq!(judged(&[permits(&all(40), 900, 1_101), permits(&all(60), 1_010, 1_200)]).len(), 2, "too long");
    let only = |lock| [Loss { lock: Some(lock), ..LOSS }];
    let of_one = |losses: &[Loss]| {
        let turns = vec![turn(40, 900, 1_100), turn(60, 1_010, 1_200)];
        exclusion(turns, Rules { losses, changes: &[], ttl: TTL }).len()
    };
    assert_eq!((of_one(&only("hot")), of_one(&only("cold"))), (0, 1));
}

/// While a limit is being changed, either of the two may be in force. Later, holders keep what they have, and nobody gets more.
#[test]
fn more_permits_than_the_limit_in_force_are_a_problem() {
    let pool =
        |slots: &[(u32, u64)], since, from, until| Turn { lock: POOL.into(), since, ..permits(slots, from, until) };
    let change = |limit, sent, answered| Change { lock: POOL, limit, sent, answered };
    let changes = [change(5, 100, 110), change(2, 200, 210)];
    let found = |turns: &[Turn]| exclusion(turns.to_vec(), Rules { losses: &[], changes: &changes, ttl: TTL });
    let four = [(0, 1), (1, 2), (2, 3), (3, 4)];
    for (since, from, allowed) in
        [(50, 99, false), (50, 105, true), (111, 120, true), (150, 250, true), (205, 250, true), (211, 250, false)]
    {
        assert_eq!(found(&[pool(&four, since, from, from)]).is_empty(), allowed, "{since} {from}");
    }
    let kept = pool(&four, 111, 120, 300);
    let late = |since| pool(&[(4, 5)], since, 220, 220);
    assert!(found(&[kept.clone(), late(205)]).is_empty());
    assert!(matches!(found(&[kept.clone(), late(215)])[..], [Problem::NoSuchSlot(_)]));
    let early = pool(&[(4, 5)], 111, 120, 300);
    assert!(matches!(found(&[early, pool(&[(0, 6), (1, 7)], 211, 220, 220)])[..], [Problem::TooMany(_, 3)]));
    assert!(found(&[kept, pool(&[(0, 6)], 211, 320, 320)]).is_empty());
}
