//! One holder at a time for each name, and names are compared exactly.

use std::sync::Barrier;

use lock_core::{Answer, Claim, Fenced, Released, Waiting};

use super::take_turns;
use crate::verbs::claim;
use crate::{Bench, Verbs};

/// While one owner holds a lock, every other is refused, also on the holder's own connection.
pub fn a_second_owner_is_refused(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let lease = one.take(&claim("a"));
    two.refused(&claim("a"));
    one.refused(&claim("a"));
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
}

/// Of many owners that ask at the same time, one gets the lock.
pub fn racing_claims_have_one_winner(bench: &Bench) {
    let clients: Vec<Verbs> = (0..4).map(|_| bench.verbs()).collect();
    for round in 0..5 {
        let (name, start) = (format!("a{round}"), Barrier::new(clients.len() * 2));
        let race = |client: &Verbs| {
            let claim = claim(&name);
            start.wait();
            matches!(client.try_acquire(&claim).unwrap(), Answer::Granted { .. })
        };
        let winners = std::thread::scope(|scope| {
            let race = &race;
            let racers: Vec<_> =
                clients.iter().flat_map(|client| [client; 2]).map(|client| scope.spawn(move || race(client))).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).filter(|&won| won).count()
        });
        // Without a queue, claims that arrive together may all be rejected.
        let fewest = usize::from(clients[0].capabilities().waiting != Waiting::Poll);
        assert!((fewest..=1).contains(&winners), "{winners} winners of {name}");
    }
}

/// Concurrent requests for different locks get the same answers as each would alone.
pub fn requests_in_flight_together_have_their_own_answers(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let claims: Vec<_> = (0..16).map(|number| claim(&format!("a{number}"))).collect();
    let is_held = |number: usize| number % 3 == 1;
    let names = claims.iter().enumerate().filter(|(number, _)| is_held(*number));
    let held: Vec<_> = names.map(|(_, mine)| two.take(&claim(mine.name.as_str()))).collect();
    together(&claims, |number, mine| match is_held(number) {
        true => drop(one.refused(mine)),
        false => assert_eq!(one.fence(&one.take(mine)), Fenced::Acknowledged, "{}", mine.name),
    });
    together(&claims, |number, mine| {
        let expected = if is_held(number) { Released::NotHeld } else { Released::Released };
        assert_eq!(one.release(mine), expected, "{}", mine.name);
    });
    held.iter().for_each(|lease| assert_eq!(two.fence(lease), Fenced::Acknowledged, "{}", lease.name));
    let free = claims.iter().enumerate().filter(|(number, _)| !is_held(*number));
    free.for_each(|(_, mine)| drop(two.take(&claim(mine.name.as_str()))));
}

/// Runs something for all of these at the same time.
fn together(claims: &[Claim], act: impl Fn(usize, &Claim) + Sync) {
    let start = Barrier::new(claims.len());
    std::thread::scope(|scope| {
        for (number, claim) in claims.iter().enumerate() {
            let (start, act) = (&start, &act);
            scope.spawn(move || {
                start.wait();
                act(number, claim);
            });
        }
    });
}

/// Clients with several waiters each take turns, never two at once.
pub fn racing_clients_never_hold_together(bench: &Bench) {
    take_turns(bench, &[bench.client(), bench.client(), bench.client()]);
}

/// Locks of different names are independent.
pub fn names_are_independent(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, second) = (claim("a"), claim("b"));
    one.take(&first);
    let lease = two.take(&second);
    assert_eq!(one.release(&first), Released::Released);
    assert_eq!(two.fence(&lease), Fenced::Acknowledged);
    one.refused(&claim("b"));
    one.take(&claim("a"));
}

/// Names are equal only if all their bytes are: case, Unicode forms, whitespace and patterns are not folded.
pub fn names_are_compared_byte_by_byte(bench: &Bench) {
    let long = "x".repeat(512);
    let other_by_a_byte = format!("{}y", &long[1..]);
    hold_all(
        bench,
        &[
            long.as_str(),
            other_by_a_byte.as_str(),
            &long[1..],
            "a",
            "A",
            "a\u{200b}",
            "a  b",
            "a b",
            "0",
            "00",
            "1e0",
            "1",
            "é",
            "e\u{301}",
            "ß",
            "ss",
            "SS",
            "ſs",
            "İ",
            "i",
            "ﬁ",
            "fi",
            "ä",
            "a\u{308}",
            "日本",
            "日本\u{fe00}",
            "🔒",
            "\u{200d}a",
            "a\u{a0}a",
            "\u{feff}a",
        ],
    );
}

/// Characters that are special to stores are not special in names, and no name affects another that contains it.
pub fn names_that_look_like_keys_of_others_are_independent(bench: &Bench) {
    hold_all(
        bench,
        &[
            "a",
            "a:",
            ":a",
            "a:b",
            "a:b:c",
            "a:q",
            "a:w",
            "{a}",
            "{a}:q",
            "{a",
            "a}",
            "{}",
            "a*",
            "a?",
            "*",
            "?",
            "[a]",
            "[",
            "]",
            "a%",
            "a_",
            "%61",
            "%",
            "_",
            "\\",
            "a\\",
            "'a'",
            "'",
            "\"",
            "\"a\"",
            "''",
            "`a`",
            "a;b",
            "a--b",
            "$a",
            "a/b",
            "/a",
            "../a",
            "./a",
            ".",
            "..",
            "~",
            "#a",
            "a#b",
            "a=b",
            "a&b",
            "a+b",
            "a,b",
            "<a>",
            "LEASEHOLD:a",
            "leasehold",
            "x:leasehold:a",
            "null",
            "NULL",
            "true",
            "-1",
            "--help",
        ],
    );
}

/// Takes all names, with one owner each. All must be held then, and free again afterwards.
fn hold_all(bench: &Bench, names: &[&str]) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let claims: Vec<_> = names.iter().map(|name| claim(name)).collect();
    let leases: Vec<_> = claims.iter().map(|claim| one.take(claim)).collect();
    for (name, lease) in names.iter().zip(&leases) {
        assert_eq!(one.fence(lease), Fenced::Acknowledged, "{name:?}");
        two.refused(&claim(name));
    }
    for (index, mine) in claims.iter().enumerate() {
        assert_eq!(one.release(mine), Released::Released, "{:?}", mine.name);
        if let Some(next) = leases.get(index + 1) {
            assert_eq!(one.fence(next), Fenced::Acknowledged, "{:?}, after {:?} was released", next.name, mine.name);
        }
    }
}
