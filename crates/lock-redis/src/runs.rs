//! Requests that wait together, cut into commands. No I/O.
//!
//! A run is requests of one verb for different locks, sent as one command. Requests for the same lock are never in one run,
//! and none overtakes an earlier one: over one connection, requests about a lock take effect in the order of asking.

use redis::{Cmd, Value};

use crate::script::Many;
use crate::wire::Call;

/// The errors with which the server refuses a script before it runs: the script is unknown, or the user may not use one of
/// its keys. Each request may still succeed alone.
pub(crate) const NOT_RUN: [&str; 2] = ["NOSCRIPT", "NOPERM"];

/// The longest run. If each of its requests has to queue, the server is busy with it for half a millisecond. Measured: with
/// twice as many, a pair costs 7 % less.
const RUN_MAX: usize = 16;

/// The length of the first run: the first request, and those right after it of the same verb for other locks.
pub(crate) fn first_run<'a>(calls: impl IntoIterator<Item = &'a Call>) -> usize {
    let mut calls = calls.into_iter();
    let Some((many, name)) = calls.next().and_then(for_many) else { return 1 };
    let mut names = vec![name];
    for call in calls.take(RUN_MAX - 1) {
        match for_many(call) {
            Some((verb, name)) if std::ptr::eq(verb, many) && !names.contains(&name) => names.push(name),
            Some(_) | None => break,
        }
    }
    names.len()
}

/// The script for many that a request can be a part of, and the key of its lock. The key before it is the same for all.
fn for_many(call: &Call) -> Option<(&'static Many, &[u8])> {
    Some((call.many?, call.parts().nth(1)?))
}

/// One command for all requests of a run.
pub(crate) fn together<'a>(many: &Many, calls: impl ExactSizeIterator<Item = &'a Call> + Clone) -> Cmd {
    let arguments = 1 + many.keys;
    let part = |index| calls.clone().filter_map(move |call| call.parts().nth(index));
    let mut command = redis::cmd("EVALSHA");
    command.arg(many.script.hash()).arg(1 + calls.len() * many.sent);
    part(0).take(1).for_each(|key| _ = command.arg(key));
    (1..=many.sent).flat_map(part).for_each(|key| _ = command.arg(key));
    for shared in arguments..arguments + many.shared {
        // Decimal numbers without leading zeros compare by length first.
        part(shared).max_by_key(|number| (number.len(), *number)).iter().for_each(|highest| _ = command.arg(highest));
    }
    calls.flat_map(|call| call.parts().skip(arguments + many.shared)).for_each(|argument| _ = command.arg(argument));
    command
}

/// The reply to a run, taken apart: one for each request, or the same for all if it is not such a list.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever else the library knows is not a list")]
pub(crate) fn apart(reply: Value, count: usize) -> Vec<Value> {
    match reply {
        Value::Array(answers) if answers.len() == count => answers,
        other => vec![other; count],
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Certainty, Claim, FencingToken, Note, Owner, Prefix, Queueing, ReleaseRequest, Terms, Ttl, Width};

    use super::*;
    use crate::script::Counting;
    use crate::server_info::{Membership, ServerInfo};
    use crate::wire::{Line, Question, Wire};

    const STORED: &ServerInfo = &ServerInfo {
        run_id: String::new(),
        replid: String::new(),
        evicts: None,
        membership: Membership::OnItsOwn,
        counting: Counting::Stored,
    };
    const CLOCK: &ServerInfo = ServerInfo::UNKNOWN;

    fn asked<Q: Question>(question: Q, server_info: &ServerInfo) -> Call {
        let wire = Wire { prefix: Prefix::default(), server: "redis://h".into(), store: None, channel: None };
        question.call(Line { wire: &wire, server_info, first: None }).ok().unwrap()
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
        }
    }

    fn release(name: &str, certainty: Certainty) -> Call {
        let Claim { name, owner, terms, .. } = claim(name);
        asked(&ReleaseRequest { name, owner, terms, certainty, keep: None }, STORED)
    }

    /// How the requests are cut.
    fn cut(calls: &[Call]) -> Vec<usize> {
        let (mut lengths, mut rest) = (Vec::new(), calls);
        while !rest.is_empty() {
            lengths.push(first_run(rest));
            rest = &rest[lengths.last().copied().unwrap()..];
        }
        lengths
    }

    #[test]
    fn a_run_is_of_one_verb() {
        let answered = |name| release(name, Certainty::Answered);
        assert_eq!(cut(&[acquire("a"), acquire("b"), answered("c"), answered("d"), acquire("e")]), [2, 2, 1]);
        assert_eq!(cut(&[acquire("a"), asked(&claim("b"), CLOCK), acquire("c")]), [1, 1, 1]);
    }

    #[test]
    fn a_name_that_is_met_again_begins_another_run() {
        let answered = |name| release(name, Certainty::Answered);
        assert_eq!(cut(&[acquire("a"), acquire("b"), acquire("a"), acquire("c"), acquire("b")]), [2, 3]);
        assert_eq!(cut(&[acquire("a"), answered("a"), answered("b"), acquire("a")]), [1, 2, 1]);
    }

    #[test]
    fn what_is_not_for_many_stays_alone() {
        let unknown = || release("b", Certainty::Unknown);
        assert_eq!(cut(&[unknown(), unknown()]), [1, 1]);
        assert_eq!(cut(&[release("a", Certainty::Answered), unknown(), release("c", Certainty::Answered)]), [1, 1, 1]);
        assert_eq!(cut(&[Call::plain(redis::cmd("GET")), Call::plain(redis::cmd("GET"))]), [1, 1]);
    }

    #[test]
    fn the_keys_come_first_and_the_shared_one_once() {
        let calls = [release("a", Certainty::Answered), release("b", Certainty::Answered)];
        let many = calls[0].many.unwrap();
        let command = together(many, calls.iter());
        let words = command.args_iter().map(|word| {
            let redis::Arg::Simple(word) = word else { panic!("{word:?}") };
            String::from_utf8(word.to_vec()).unwrap()
        });
        let mine = format!("lh1:{}:", "07".repeat(16));
        let keys = ["leasehold:counter", "a", "b", "leasehold:{a}:q", "leasehold:{b}:q"];
        let expected = [&["EVALSHA", many.script.hash(), "5"][..], &keys, &[&mine, &mine]].concat();
        assert_eq!(words.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_highest_floor_counts_for_all() {
        let with_floor =
            |name, floor| asked(&Claim { floor: Some(FencingToken::new(floor).unwrap()), ..claim(name) }, STORED);
        let calls = [with_floor("a", 9), acquire("b"), with_floor("c", 1000), with_floor("d", 999)];
        let command = together(calls[0].many.unwrap(), calls.iter());
        let words: Vec<_> = command.args_iter().collect();
        assert_eq!(words.len(), 3 + 1 + 4 * 3 + 1 + 4 * 2);
        assert!(matches!(words[3 + 1 + 4 * 3], redis::Arg::Simple(b"1000")));
    }

    #[test]
    fn what_is_no_list_is_said_to_all() {
        let one = |number| Value::Int(number);
        assert_eq!(apart(Value::Array(vec![one(1), one(2)]), 2), [one(1), one(2)]);
        assert_eq!(apart(one(1), 2), [one(1), one(1)]);
        let short = Value::Array(vec![one(1)]);
        assert_eq!(apart(short.clone(), 2), [short.clone(), short]);
    }
}
