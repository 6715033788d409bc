//! What `lock-redis` reads of a server: replies, messages, values of locks, what it says about itself.

use ::redis::Value;
use fuzz::inputs::{like, number, reply, reply_like, text};
use fuzz::{fuzz, is_presentable};
use lock_core::{LockName, Prefix};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// An owner, which is a secret.
const OWNER: &str = "abababababababababababababababab";

/// Texts of replies.
const TEXTS: &[&str] = &[
    "lh1:abababababababababababababababab:7:9:4711@web-3 nightly: report",
    "lh2:s:2147483647:",
    "granted",
    "held",
    "queued",
    "dwells",
    "otherkind",
    "above",
    "abstains",
    "usage",
    "0,2,3",
    "run:000000000000beef",
    "h:1 h:2 h:3",
    "000000000000beef",
    "OK",
    "7",
    "0",
    "NOREPLICAS not enough",
];

/// Texts of one kind of field each, and numbers.
fn of(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

fn int(number: i64) -> Value {
    Value::Int(number)
}

fn list<const N: usize>(parts: [Value; N]) -> Value {
    Value::Array(parts.into())
}

/// A well-formed reply of each form.
fn forms() -> Vec<Value> {
    let value = || of(TEXTS[0]);
    let server = list([of("h1"), int(7000), of("id"), list([])]);
    let number = |count| Value::Array(vec![int(1); count]);
    vec![
        int(7),
        Value::Nil,
        value(),
        list([of("granted"), int(7), int(9)]),
        list([of("granted"), int(7), int(9), of("0,2,3"), int(1)]),
        list([of("granted"), int(7), int(9), of("0,2,3"), int(1), int(8)]),
        list([of("held"), value(), int(30_000)]),
        list([of("queued"), value(), int(30_000), int(3), int(10_000), int(0), of("12")]),
        list([of("dwells"), int(70_000)]),
        list([of("otherkind"), int(8)]),
        list([of("usage"), int(8), int(3)]),
        number(1),
        number(2),
        number(5),
        list([int(7), int(1_700_000_000_000_000)]),
        list([value(), int(30_000)]),
        list([list([value(), int(30_000), int(1), list([int(8), int(3), of("4711@web-3 nightly"), int(5)])])]),
        list([list([value(), int(1), int(0), list([]), int(8), int(1), list([value(), int(1), of("0,2")])])]),
        list([of("0"), list([of("a"), of("shop:b")])]),
        list([list([of("000000000000beef"), int(7)])]),
        list([
            Value::Array(
                [
                    vec![of("run:000000000000beef"), Value::Nil],
                    vec![int(7); 3],
                    vec![of("h:1 h:2"), int(7)],
                    vec![Value::Nil; 4],
                    vec![int(7)],
                ]
                .concat(),
            ),
            Value::Nil,
            int(7),
        ]),
        list([list([int(0), int(5460), server.clone(), server.clone()]), list([int(5461), int(16_383), server])]),
        list([int(7), int(1)]),
    ]
}

/// Refusals are presentable, and say nothing of the values of locks.
fn said(text: &str) -> TestCaseResult {
    prop_assert!(!text.contains(OWNER), "{text}");
    text.lines().try_for_each(is_presentable)
}

#[test]
fn replies_of_any_form() {
    fuzz(reply(TEXTS), |reply| said(&lock_redis::fuzz::reply(&reply).unwrap()));
}

#[test]
fn replies_that_are_nearly_well_formed() {
    fuzz(reply_like(forms(), TEXTS), |reply| said(&lock_redis::fuzz::reply(&reply).unwrap()));
}

#[test]
fn each_form_is_read_by_somebody() {
    let strange = lock_redis::fuzz::reply(&Value::Okay).unwrap().lines().count();
    for form in forms() {
        let refused = lock_redis::fuzz::reply(&form).unwrap().lines().count();
        assert!(refused < strange, "{form:?}");
    }
}

#[test]
fn greetings() {
    const INFO: &[&str] = &[
        "run_id:abc\r\nredis_mode:standalone\r\nredis_version:7.0.15\r\n",
        "role:master\r\nconnected_slaves:0\r\nmaster_replid:abc\r\nmaster_replid2:0000\r\n",
        "cluster_enabled:0\r\n",
        "maxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\n",
    ];
    let info = || like(INFO).prop_map(|text| Value::BulkString(text.into_bytes()));
    let known = vec(number().prop_map(Value::Int), 0..10).prop_map(Value::Array);
    let part = prop_oneof![info(), known, reply(TEXTS)];
    let sections = prop_oneof![Just(INFO.iter().map(|text| of(text)).collect()), vec(info(), 0..5)];
    fuzz((sections, vec(part, 0..8)), |(sections, more)| said(&lock_redis::fuzz::greeting(&[sections, more].concat())));
}

#[test]
fn messages() {
    const MESSAGES: &[&str] = &[
        "granted abababababababababababababababab 7:9 30000 10000 shop:an order",
        "shared abababababababababababababababab 7:9 30000 10000 5 0,2,3 1 shop:an order",
        "shared abababababababababababababababab 7:7 30000 10000 2147483647 - 0 shop:an order",
        "freed shop:an order",
        "recheck shop:a",
        "latch shop:a",
    ];
    let prefix: Prefix = "shop".parse().unwrap();
    fuzz(prop_oneof![like(MESSAGES), text()], |message| match lock_redis::fuzz::message(&prefix, message.as_bytes()) {
        Some(told) => said(&told),
        None => Ok(()),
    });
}

#[test]
fn values_of_locks() {
    const VALUES: &[&str] = &[
        "lh1:abababababababababababababababab:7:9:4711@web-3 nightly: report",
        "lh1:abababababababababababababababab:7:9:1795429596~1@h",
        "lh2:s:2147483647:",
    ];
    let bytes = vec(any::<u8>(), 0..60);
    fuzz(prop_oneof![like(VALUES).prop_map(String::into_bytes), bytes], |value| {
        match lock_redis::fuzz::stored(&value) {
            Ok(written) => prop_assert_eq!(lock_redis::fuzz::stored(written.as_bytes()), Ok(written)),
            Err(holder) => said(&format!("{holder:?}"))?,
        }
        Ok(())
    });
}

#[test]
fn redirects() {
    fuzz(
        prop_oneof![like(&["3999 127.0.0.1:6381", "3999 ::1:6381", "3999 [::1]:6381", "3999 :1"]), text()],
        |details| {
            if let Some(address) = lock_redis::fuzz::redirect("MOVED", &details).filter(|text| text.trim() == text) {
                let again = lock_redis::fuzz::redirect("ASK", &format!("1 {address}"));
                prop_assert_eq!(again, Some(address));
            }
            Ok(())
        },
    );
}

#[test]
fn patterns() {
    const PATTERNS: &[&str] = &["order:*", "a*a*a*a*a*a*a*a*a*a*a*b", "[a-z]?x", "\\*", "[^a]*", "[]", "[a"];
    const NAMES: &[&str] = &["order:42", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "zqx", "*"];
    fuzz((like(PATTERNS), like(NAMES)), |(pattern, name)| {
        let start = std::time::Instant::now();
        lock_core::inspect::glob_matches(&pattern, &name);
        prop_assert!(start.elapsed().as_secs() < 5, "{pattern} takes long");
        if let (false, Ok(name)) = (name.contains(['*', '?', '[', '\\']), name.parse::<LockName>()) {
            prop_assert!(lock_core::inspect::glob_matches(name.as_str(), name.as_str()));
        }
        Ok(())
    });
}
