//! Requests that wait together, cut into commands. No I/O.
//!
//! A run is requests of one verb for different locks, sent as one command. Over one connection, requests for the same lock
//! take effect in the order of asking; those for different locks may overtake each other.

use std::collections::HashMap;
use std::{iter, ptr};

use redis::{Cmd, RedisError, Value};

use crate::script::Many;
use crate::wire::{Call, SCRIPT_AND_COUNT};

/// The errors with which the server refuses a script before it runs: the script is unknown, or the user may not use one of
/// its keys. Each request may still succeed alone.
pub(crate) const NOT_RUN: [&str; 2] = ["NOSCRIPT", "NOPERM"];

/// Whether the server refused a script with one of these errors.
#[cfg(feature = "async")]
pub(crate) fn was_not_run(error: &RedisError) -> bool {
    error.code().is_some_and(|code| NOT_RUN.contains(&code))
}

/// Whether a script ended before its request was done, because other clients wait for it: the same request goes on.
pub(crate) fn was_cut_short(error: &RedisError) -> bool {
    error.code() == Some("PASSING")
}

/// The longest run. If each of its requests has to queue, the server is busy with it for half a millisecond. Measured: with
/// twice as many, a pair costs 7 % less.
const RUN_MAX: usize = 32;

/// The size of what comes before the keys.
const BEGINNING_ROUGHLY: usize = 64;

/// Groups requests into runs, which are sent in this order.
///
/// A request joins the first run of its verb that has room, so it may overtake requests for other locks. None overtakes a
/// request for the same lock, and none goes past a request that is not for many, since that may concern any lock.
pub(crate) fn grouped<T>(requests: Vec<T>, call: impl Fn(&T) -> &Call) -> Vec<Vec<T>> {
    let numbers = numbered(requests.iter().map(call));
    let mut runs: Vec<Vec<T>> = Vec::new();
    for (request, number) in requests.into_iter().zip(numbers) {
        match runs.get_mut(number) {
            Some(run) => run.push(request),
            None => runs.push(vec![request]),
        }
    }
    runs
}

/// For each request, the number of its run.
fn numbered<'a>(calls: impl Iterator<Item = &'a Call>) -> Vec<usize> {
    let mut runs: Vec<(Option<&Call>, usize)> = Vec::new();
    // The first run that a request may join, and the first one that each name may join.
    let (mut open, mut open_to) = (0, HashMap::with_capacity(calls.size_hint().0));
    let number = |call: &'a Call| {
        let Some((many, name)) = for_many(call) else {
            runs.push((None, 1));
            open = runs.len();
            return open - 1;
        };
        let has_room =
            |run: &(Option<&Call>, usize)| run.1 < RUN_MAX && run.0.is_some_and(|first| go_together(many, first, call));
        let from = open_to.get(name).map_or(open, |to| open.max(*to));
        let number = (from..runs.len()).find(|run| runs.get(*run).is_some_and(has_room)).unwrap_or(runs.len());
        match runs.get_mut(number) {
            Some((_, length)) => *length += 1,
            None => runs.push((Some(call), 1)),
        }
        open_to.insert(name, number + 1);
        number
    };
    calls.map(number).collect()
}

/// The script for many that a request can be a part of, and the key of its lock. The keys before it are the same for all.
fn for_many(call: &Call) -> Option<(&'static Many, &[u8])> {
    let many = call.many?;
    Some((many, call.parts().nth(many.shared_keys)?))
}

/// Whether a request can be in a run with this first one.
fn go_together(many: &Many, first: &Call, call: &Call) -> bool {
    let mut same = (many.shared_keys + 1..).take(many.same);
    first.many.is_some_and(|verb| ptr::eq(verb, many))
        && same.all(|index| first.parts().nth(index) == call.parts().nth(index))
}

/// The script for a run of requests, unless there is one.
pub(crate) fn many<'a>(mut calls: impl ExactSizeIterator<Item = &'a Call>) -> Option<&'static Many> {
    if calls.len() > 1 { calls.next()?.many } else { None }
}

/// One command for all requests of a run.
pub(crate) fn together<'a>(many: &Many, calls: impl ExactSizeIterator<Item = &'a Call> + Clone) -> Cmd {
    let (lock, count) = (many.shared_keys, calls.len());
    let own = lock + 1 + many.shared;
    let alike = own + many.own;
    let part = |index| calls.clone().filter_map(move |call| call.parts().nth(index));
    // Those of one verb are of about the same size.
    let size = |call: &Call| call.parts().fold((0, 0), |(words, bytes), part| (words + 1, bytes + part.len()));
    let (words, bytes) = calls.clone().next().map_or((0, 0), size);
    let mut command = Cmd::with_capacity(SCRIPT_AND_COUNT + count * words, BEGINNING_ROUGHLY + count * bytes);
    command.arg("EVALSHA").arg(many.script.hash()).arg(lock + count);
    (0..lock).flat_map(|key| part(key).take(1)).for_each(|key| _ = command.arg(key));
    part(lock).for_each(|key| _ = command.arg(key));
    for shared in lock + 1..own {
        // Decimal numbers without leading zeros compare by length first.
        part(shared).max_by_key(|number| (number.len(), *number)).iter().for_each(|highest| _ = command.arg(highest));
    }
    (own..alike).flat_map(part).for_each(|argument| _ = command.arg(argument));
    for index in alike..words {
        let (mut rest, first) = (part(index), part(index).next());
        let passed = if rest.all(|argument| Some(argument) == first) { 1 } else { count };
        part(index).take(passed).for_each(|argument| _ = command.arg(argument));
    }
    command
}

/// The reply to a run, taken apart: one for each request, or the same for all if it is neither a list of these nor a number.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever else the library knows is neither")]
pub(crate) fn apart(many: &Many, reply: Value, count: usize) -> Vec<Value> {
    match reply {
        Value::Int(first) => {
            iter::successors(Some(first), |last| last.checked_add(many.step)).map(Value::Int).take(count).collect()
        }
        Value::Array(answers) if answers.len() == count => answers,
        other => vec![other; count],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lock_core::{
        Certainty, Claim, Evidence, Fairness, FencingToken, NameKind, Note, Owner, Queueing, ReleaseRequest, Terms,
        Ttl, Width,
    };

    use super::*;
    use crate::script::Counting;
    use crate::server::server_info::ServerInfo;
    use crate::wire::{Attempt, Line, Question, Wire};

    const STORED: &ServerInfo = &ServerInfo::assumed(Counting::Stored);
    const CLOCK: &ServerInfo = ServerInfo::UNKNOWN;

    fn asked<Q: Question>(question: Q, server_info: &ServerInfo) -> Call {
        let wire = Wire { server: "redis://h".into(), ..Wire::handed_in() };
        question.call(Line { wire: &wire, server_info, attempt: Attempt::default() }).ok().unwrap()
    }

    fn acquire(name: &str) -> Call {
        asked(&claim(name), STORED)
    }

    fn claim(name: &str) -> Claim {
        Claim {
            name: name.parse().unwrap(),
            owner: Owner::from_random([7; 16]),
            terms: Terms::exclusive(Ttl::DEFAULT),
            width: Width::ONE,
            floor: None,
            note: Note::from_wire("1@h"),
            queueing: Queueing::Unwanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        }
    }

    fn release(name: &str, certainty: Certainty) -> Call {
        let Claim { name, owner, terms, .. } = claim(name);
        asked(&ReleaseRequest { name, owner, terms, certainty, keep: None, evidence: Evidence::Nothing }, STORED)
    }

    /// The runs, with the requests by their numbers.
    fn runs(calls: &[Call]) -> Vec<Vec<usize>> {
        let numbers = grouped(calls.iter().enumerate().collect(), |(_, call)| call);
        let numbers: Vec<Vec<_>> =
            numbers.into_iter().map(|run| run.into_iter().map(|(number, _)| number).collect()).collect();
        assert_eq!(numbers.concat().len(), calls.len(), "{numbers:?}");
        numbers
    }

    fn answered(name: &str) -> Call {
        release(name, Certainty::Answered)
    }

    #[test]
    fn a_run_is_of_one_verb() {
        let calls = [acquire("a"), acquire("b"), answered("c"), acquire("d"), answered("e")];
        assert_eq!(runs(&calls), [vec![0, 1, 3], vec![2, 4]]);
        assert_eq!(runs(&[acquire("a"), asked(&claim("b"), CLOCK), acquire("c")]), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn requests_for_one_lock_keep_their_order() {
        let calls = [acquire("a"), acquire("b"), acquire("a"), acquire("c"), acquire("b")];
        assert_eq!(runs(&calls), [vec![0, 1, 3], vec![2, 4]]);
        let calls = [acquire("a"), answered("a"), answered("b"), acquire("a"), acquire("c"), answered("a")];
        assert_eq!(runs(&calls), [vec![0, 4], vec![1, 2], vec![3], vec![5]]);
    }

    #[test]
    fn a_full_run_is_followed_by_another() {
        let calls: Vec<_> = (0..RUN_MAX + 2).map(|lock| acquire(&lock.to_string())).collect();
        assert_eq!(runs(&calls), [(0..RUN_MAX).collect(), vec![RUN_MAX, RUN_MAX + 1]]);
    }

    #[test]
    fn what_is_not_for_many_stays_alone_and_in_its_place() {
        let unknown = || release("b", Certainty::Unknown);
        assert_eq!(runs(&[unknown(), unknown()]), [[0], [1]]);
        assert_eq!(runs(&[answered("a"), acquire("c"), unknown(), answered("d")]), [[0], [1], [2], [3]]);
        assert_eq!(runs(&[Call::plain(redis::cmd("GET")), Call::plain(redis::cmd("GET"))]), [[0], [1]]);
    }

    #[test]
    fn no_request_overtakes_one_that_it_may_depend_on() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let calls: Vec<_> = iter::repeat_with(|| match (random.u8(..20), random.u8(..24).to_string()) {
                (0, name) => release(&name, Certainty::Unknown),
                (1..9, name) => answered(&name),
                (_, name) => acquire(&name),
            })
            .take(60)
            .collect();
            let runs = runs(&calls);
            for run in &runs {
                let names: BTreeSet<_> =
                    run.iter().filter_map(|number| for_many(&calls[*number])).map(|(_, name)| name).collect();
                assert!(run.len() <= RUN_MAX && names.len() == run.len() || run.len() == 1, "{runs:?}");
                assert!(
                    run.iter()
                        .all(|number| calls[*number].many.map(ptr::from_ref) == calls[run[0]].many.map(ptr::from_ref))
                );
            }
            let sent = runs.concat();
            for (place, later) in sent.iter().enumerate() {
                for earlier in sent[place..].iter().filter(|earlier| *earlier < later) {
                    let both = [later, earlier].map(|number| for_many(&calls[*number]));
                    let [Some((_, later)), Some((_, earlier))] = both else { panic!("{runs:?}") };
                    assert_ne!(later, earlier, "{runs:?}");
                }
            }
        }
    }

    #[test]
    fn the_keys_come_first_and_the_shared_ones_once() {
        let calls = [release("a", Certainty::Answered), release("b", Certainty::Answered)];
        let many = calls[0].many.unwrap();
        let command = together(many, calls.iter());
        let words = command.args_iter().map(|word| {
            let redis::Arg::Simple(word) = word else { panic!("{word:?}") };
            String::from_utf8(word.to_vec()).unwrap()
        });
        let mine = format!("lh1:{}:", "07".repeat(16));
        let keys = ["leasehold:counter", "leasehold:no-dwell", "a", "b"];
        let expected = [&["EVALSHA", many.script.hash(), "4"][..], &keys, &["leasehold:{", &mine, &mine]].concat();
        assert_eq!(words.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_highest_floor_counts_for_all() {
        let with_floor =
            |name, floor| asked(&Claim { floor: Some(FencingToken::new(floor).unwrap()), ..claim(name) }, STORED);
        let calls = [with_floor("a", 9), acquire("b"), with_floor("c", 1000), with_floor("d", 999)];
        let command = together(calls[0].many.unwrap(), calls.iter());
        let words: Vec<_> = command.args_iter().collect();
        assert!(matches!(words[3 + 2 + 4], redis::Arg::Simple(b"1000")));
    }

    #[test]
    fn terms_that_are_the_same_are_passed_once() {
        let words = |calls: &[Call]| together(calls[0].many.unwrap(), calls.iter()).args_iter().count();
        let slow = asked(&Claim { terms: Terms::exclusive("20s".parse().unwrap()), ..claim("b") }, STORED);
        let with_terms = |terms: usize| 3 + 2 + 3 + 3 + 3 + terms;
        assert_eq!(words(&[acquire("a"), acquire("b"), acquire("c")]), with_terms(1));
        assert_eq!(words(&[acquire("a"), slow, acquire("c")]), with_terms(3));
    }

    #[test]
    fn what_is_no_list_is_said_to_all() {
        let one = |number| Value::Int(number);
        let many = release("a", Certainty::Answered).many.unwrap();
        assert_eq!(apart(many, Value::Array(vec![one(1), one(2)]), 2), [one(1), one(2)]);
        assert_eq!(apart(many, Value::Okay, 2), [Value::Okay, Value::Okay]);
        let short = Value::Array(vec![one(1)]);
        assert_eq!(apart(many, short.clone(), 2), [short.clone(), short]);
    }

    #[test]
    fn a_number_is_the_token_of_the_first_claim_and_the_same_for_all_releases() {
        let [claims, releases] = [acquire("a"), answered("a")].map(|call| call.many.unwrap());
        assert_eq!(apart(claims, Value::Int(7), 3), [7, 8, 9].map(Value::Int));
        assert_eq!(apart(releases, Value::Int(1), 2), [1, 1].map(Value::Int));
    }
}
