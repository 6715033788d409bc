//! A run as operations with a beginning and an end, for checkers of others that know nothing of us: a JSON object in each line.
//!
//! An operation took effect at one moment between `call` and `return`, in nanoseconds of one clock. Without a `return`, nobody knows
//! whether and when it did: the worker was killed before it could write that down.
//!
//! - `acquire` gives a `token`, or none if the wait ended without a turn.
//! - `end` is the moment from which the lease of this token need not exclude anybody. It is after the last moment at which its guard said
//!   that it was held, and not after the holder knew that its turn was over. A release, an expired lease and a killed holder all look like this.
//! - `read` and `write` are requests to the register with a `token`. The answer is the number, or none for a refusal. A write asks
//!   for the number after its `base`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::ask::Ask;
use crate::history::{Event, What};
use crate::hold::Hold;
use crate::turn::seat_name;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Operation {
    client: String,
    /// The lock, or the resource that the register has a number for.
    object: String,
    #[serde(flatten)]
    deed: Deed,
    call: u64,
    #[serde(rename = "return")]
    returned: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "operation", rename_all = "lowercase")]
enum Deed {
    Acquire { token: Option<u64> },
    End { token: u64 },
    Read { token: u64, answer: Option<u64> },
    Write { token: u64, base: u64, answer: Option<u64> },
}

/// What a seat has begun and not ended.
#[derive(Debug, Default)]
struct Begun<'a> {
    /// Since when it waits for which lock.
    wait: Option<(u64, &'a str)>,
    turn: Option<Held<'a>>,
    /// Since when it asks the register.
    ask: Option<(u64, &'a Ask)>,
}

#[derive(Debug)]
struct Held<'a> {
    lock: &'a str,
    token: u64,
    until: u64,
}

/// The operations in a worker's history, whose seats hold locks alone.
///
/// # Panics
/// If there are readers or permits, which would need operations of their own.
pub fn operations(worker: &str, history: &[Event]) -> Vec<Operation> {
    let mut seats: BTreeMap<usize, Begun<'_>> = BTreeMap::new();
    let named = |seat, (object, deed, call, returned): Span<'_>| {
        let (client, object) = (seat_name(worker, seat), object.to_owned());
        Operation { client, object, deed, call, returned }
    };
    let mut operations = Vec::new();
    for event in history {
        let ended = seats.entry(event.seat).or_default().follow(event);
        operations.extend(ended.map(|span| named(event.seat, span)));
    }
    operations.extend(seats.iter().flat_map(|(seat, begun)| begun.unknown().map(|span| named(*seat, span))));
    operations
}

/// An operation on an object, without its client.
type Span<'a> = (&'a str, Deed, u64, Option<u64>);

impl<'a> Begun<'a> {
    /// What an event begins is kept, and what it ends is returned.
    fn follow(&mut self, event: &'a Event) -> Option<Span<'a>> {
        let (at, lock) = (event.at, event.lock.as_str());
        match &event.what {
            What::Waits => self.wait = Some((at, lock)),
            What::Has(Hold::Write(token)) => {
                self.turn = Some(Held { lock, token: *token, until: at });
                return self.waited(Some(*token), Some(at));
            }
            What::Has(hold) => panic!("{lock} is not held alone: {hold}"),
            What::Left(_) => return self.waited(None, Some(at)),
            What::Still => self.turn.iter_mut().for_each(|turn| turn.until = at),
            What::Asks(ask) => self.ask = Some((at, ask)),
            What::Answered(answer) => return self.ask.take().map(|ask| asked(ask, *answer, Some(at))),
            // A lease that was over when it arrived makes no turn.
            What::Ended(_) => return self.ended(at),
        }
        None
    }

    fn ended(&mut self, at: u64) -> Option<Span<'a>> {
        let end = self.turn.take().map(|turn| turn.end(Some(at)));
        end.or_else(|| self.waited(None, Some(at)))
    }

    fn waited(&mut self, token: Option<u64>, returned: Option<u64>) -> Option<Span<'a>> {
        self.wait.take().map(|(call, lock)| (lock, Deed::Acquire { token }, call, returned))
    }

    /// What had not ended when the history did.
    fn unknown(&self) -> impl Iterator<Item = Span<'a>> {
        let wait = self.wait.map(|(call, lock)| (lock, Deed::Acquire { token: None }, call, None));
        let turn = self.turn.as_ref().map(|turn| turn.end(None));
        wait.into_iter().chain(turn).chain(self.ask.map(|ask| asked(ask, None, None)))
    }
}

impl<'a> Held<'a> {
    fn end(&self, returned: Option<u64>) -> Span<'a> {
        (self.lock, Deed::End { token: self.token }, self.until, returned)
    }
}

fn asked((call, ask): (u64, &Ask), answer: Option<u64>, returned: Option<u64>) -> Span<'_> {
    let token = ask.token;
    let deed = ask.base.map_or(Deed::Read { token, answer }, |base| Deed::Write { token, base, answer });
    (&ask.resource, deed, call, returned)
}

/// Writes the operations of all workers to a file, and returns how many there are.
///
/// # Errors
/// Those of the file system.
pub fn write(histories: &[(&str, Vec<Event>)], path: &Path) -> io::Result<usize> {
    let mut file = BufWriter::new(File::create(path)?);
    let operations: Vec<_> = histories.iter().flat_map(|(worker, history)| operations(worker, history)).collect();
    for operation in &operations {
        serde_json::to_writer(&mut file, operation)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    Ok(operations.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;

    /// What a history is written as.
    fn lines(history: &str) -> Vec<String> {
        let operations = operations("w", &read(history).unwrap());
        operations.iter().map(|operation| serde_json::to_string(operation).unwrap()).collect()
    }

    #[test]
    fn a_turn_becomes_operations_that_ended() {
        let history = "1 0 hot waits\n2 0 hot has 7\n3 0 hot asks hot 7\n4 0 hot answered 5\n5 0 hot still\n\
                       6 0 hot asks hot 7 5\n7 0 hot answered refused\n8 0 hot lost\n9 0 hot waits\n10 0 hot timed-out\n\
                       11 0 hot waits\n12 0 hot lost\n";
        let expected = [
            r#"{"client":"w/0","object":"hot","operation":"acquire","token":7,"call":1,"return":2}"#,
            r#"{"client":"w/0","object":"hot","operation":"read","token":7,"answer":5,"call":3,"return":4}"#,
            r#"{"client":"w/0","object":"hot","operation":"write","token":7,"base":5,"answer":null,"call":6,"return":7}"#,
            r#"{"client":"w/0","object":"hot","operation":"end","token":7,"call":5,"return":8}"#,
            r#"{"client":"w/0","object":"hot","operation":"acquire","token":null,"call":9,"return":10}"#,
            r#"{"client":"w/0","object":"hot","operation":"acquire","token":null,"call":11,"return":12}"#,
        ];
        assert_eq!(lines(history), expected);
    }

    #[test]
    fn what_a_killed_worker_had_begun_has_no_end() {
        let history = "1 0 hot waits\n1 1 cool waits\n2 0 hot has 7\n3 0 hot asks hot 7\n";
        let expected = [
            r#"{"client":"w/0","object":"hot","operation":"acquire","token":7,"call":1,"return":2}"#,
            r#"{"client":"w/0","object":"hot","operation":"end","token":7,"call":2,"return":null}"#,
            r#"{"client":"w/0","object":"hot","operation":"read","token":7,"answer":null,"call":3,"return":null}"#,
            r#"{"client":"w/1","object":"cool","operation":"acquire","token":null,"call":1,"return":null}"#,
        ];
        assert_eq!(lines(history), expected);
    }
}
