//! What `lock-core` and `lock-kit` read.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use fuzz::inputs::{like, number, text};
use fuzz::{fuzz, is_presentable};
use lock_core::latch::ArrivalId;
use lock_core::limit::Record;
use lock_core::node::Epoch;
use lock_core::{
    FencingToken, Invalid, LeaseId, LockName, Note, Owner, Prefix, Stamped, Ticket, Ttl, parse_duration,
    to_the_millisecond,
};
use lock_kit::Slot;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// What is read comes back when it is written; what is refused is named, in one short line.
fn reads_back<T>(text: &str) -> TestCaseResult
where
    T: FromStr<Err = Invalid> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => prop_assert_eq!(value.to_string().parse::<T>(), Ok(value)),
        Err(refused) => names_it(&refused, text.trim_start_matches(['0', '+']))?,
    }
    Ok(())
}

fn names_it(refused: &Invalid, text: &str) -> TestCaseResult {
    let shown: String = text.chars().take(20).flat_map(char::escape_debug).collect();
    let said = refused.to_string();
    prop_assert!(said.contains(&shown) && !refused.remedy().is_empty(), "{said}");
    is_presentable(&said)
}

fn either(examples: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![like(examples), text()]
}

const OWNER: &str = "abababababababababababababababab";

#[test]
fn lock_names() {
    fuzz(either(&["invoice:42", "a b", "leasehold:seq", "x{1}{2}"]), |text| reads_back::<LockName>(&text));
}

#[test]
fn arrival_ids() {
    fuzz(either(&["shard-3", "a b", "漢字"]), |text| reads_back::<ArrivalId>(&text));
}

#[test]
fn lease_ids() {
    fuzz(either(&["ab00cd00ab00cd00ab00cd00ab00cd00"]), |text| reads_back::<LeaseId>(&text));
}

#[test]
fn epochs() {
    fuzz(either(&["000000000000beef", "BEEF"]), |text| reads_back::<Epoch>(&text));
}

#[test]
fn records_of_limits() {
    fuzz(either(&["8 4", "1", "64 32 16 8 4 2 1", "2147483646 1"]), |text| match text.parse::<Record>() {
        Ok(record) => {
            prop_assert_eq!(record.to_string().parse(), Ok(record));
            Ok(())
        }
        Err(refused) => is_presentable(&refused.to_string()),
    });
}

#[test]
fn tokens() {
    fuzz((either(&["34", "9007199254740991"]), number()), |(text, number)| {
        reads_back::<FencingToken>(&text)?;
        if let Ok(token) = FencingToken::try_from(number) {
            prop_assert_eq!(i64::from(token), number);
        }
        Ok(())
    });
}

#[test]
fn slots_of_jobs() {
    fuzz(
        either(&["2026-11-21T03:00:00Z", "2026-11-21 03:00", "20261121T0300Z", "2026-11-21T03:00+01:00[UTC]"]),
        |text| reads_back::<Slot>(&text),
    );
}

#[test]
fn prefixes_and_keys() {
    fuzz((either(&["shop", "leasehold", "a:b"]), either(&["shop:x", "shop:", "x"])), |(text, key)| {
        let prefix: Prefix = match text.parse() {
            Ok(prefix) => prefix,
            Err(refused) => return names_it(&refused, &text),
        };
        if let Ok(name) = key.parse::<LockName>() {
            prop_assert_eq!(prefix.name(&prefix.key(name.as_str())), Some(name));
        }
        if let Some(name) = prefix.name(&key) {
            prop_assert_eq!(prefix.key(name.as_str()), key);
        }
        Ok(())
    });
}

#[test]
fn durations() {
    fuzz(either(&["30s", "1h 30m", "100ms", "584542046090y", "18446744073709551615s 999999999ns", "1us"]), |text| {
        reads_back_trimmed(&text)?;
        match parse_duration("wait", &text) {
            Ok(duration) => prop_assert!(to_the_millisecond(duration) >= Duration::from_millis(1)),
            Err(refused) => names_it(&refused, &text)?,
        }
        Ok(())
    });
}

fn reads_back_trimmed(text: &str) -> TestCaseResult {
    match text.parse::<Ttl>() {
        Ok(ttl) => prop_assert_eq!(ttl.to_string().parse::<Ttl>(), Ok(ttl)),
        Err(refused) => is_presentable(&refused.to_string())?,
    }
    Ok(())
}

#[test]
fn owners_are_never_shown() {
    fuzz(either(&[OWNER, "ABABABABABABABABABABABABABABABAB"]), |text| {
        match text.parse::<Owner>() {
            Ok(owner) => {
                let shown = format!("{owner:?}");
                prop_assert_eq!(owner.to_wire().parse(), Ok(owner));
                prop_assert!(!shown.contains(&text), "{}", shown);
            }
            Err(refused) => prop_assert!(text.is_empty() || refused.to_string().contains("(hidden)")),
        }
        Ok(())
    });
}

#[test]
fn tickets_are_never_shown() {
    const TICKETS: &[&str] = &[
        "lht1:abababababababababababababababab:x:7:30000:a:b",
        "lht1:abababababababababababababababab:s:7:30000:a b",
        "lht1:abababababababababababababababab:3/8:9007199254740991:18446744073709551615:invoice:42",
    ];
    fuzz(either(TICKETS), |text| {
        let said = match text.parse::<Ticket>() {
            Ok(ticket) => {
                let shown = format!("{ticket} {ticket:?}");
                prop_assert_eq!(ticket.expose().parse(), Ok(ticket));
                shown
            }
            Err(refused) => refused.to_string(),
        };
        prop_assert!(!said.contains(OWNER), "{said}");
        is_presentable(&said)
    });
}

#[test]
fn notes_with_a_time() {
    fuzz(either(&["1795429596~4711@web-3 nightly", "0~", "+5~1@h", "4711@web-3 7~8"]), |line| {
        let written = Stamped::from_wire(&line).to_wire();
        let stamped = Stamped::from_wire(&written);
        prop_assert_eq!(stamped.to_wire(), written);
        prop_assert!(stamped.age(Duration::MAX).is_none_or(|age| stamped.age(Duration::ZERO) < Some(age)));
        is_presentable(&format!("{} ", stamped.note))
    });
}

#[test]
fn notes() {
    fuzz(either(&["4711@web-3 nightly: report", "@ ", "1@", "-1@h", "99999999999@h x"]), |text| {
        let note = Note::from_wire(&text);
        prop_assert_eq!(Note::from_wire(note.to_wire()), note.clone());
        is_presentable(&format!("{note} "))?;
        let made = Note::new(&text, 7, note.why());
        if let Ok(made) = made {
            prop_assert_eq!((made.pid(), made.why()), (Some(7), note.why()));
            prop_assert_eq!(Note::from_wire(made.to_wire()), made);
        }
        Ok(())
    });
}
