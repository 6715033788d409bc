//! The verbs as questions, and the meaning of their answers. No I/O.

use std::time::Duration;

use lock_core::{
    Answer, Certainty, Claim, Evidence, Fairness, Fenced, FencingToken, Lease, Mode, Operation, Queueing,
    ReleaseRequest, Released, Slots, Terms, TokenRange,
};
use redis::Value::{self, BulkString as Text, Int};

use super::limit::{limit_from, refused};
use super::look::{look_at_holder, seen_one};
use super::seen::Seen;
use super::value::{Stored, limit_of, of_owner, of_tokens, slots, stamped, token};
use crate::channel::Channel;
use crate::failover::OnFailover;
use crate::failure::Failure;
use crate::keys::Key;
use crate::script::{self, Drawing};
use crate::wire::{Call, Line, Question, Retry, read, remaining, to_millis};

/// How long after it was sent a request may arrive. Chosen: longer than a network delays it, except in rare cases, and ten times as long as
/// a client waits for its answer by default.
const LATE_MAX: Duration = Duration::from_secs(10);

/// How long a place is reported to last while the channel is closed, multiplied by its position. Its owner then asks
/// again after a third of that instead of waiting for a notification.
const UNTOLD_STEP: Duration = Duration::from_millis(30);
/// The least that is reported, near the head of the queue.
const UNTOLD_MIN: Duration = Duration::from_millis(300);

impl Question for &Claim {
    type Answer = Answer;
    const OPERATION: Operation = Operation::Acquire;

    fn call(&self, Line { wire, server_info, .. }: Line<'_>) -> Result<Call, Failure> {
        server_info.failover.check(self.terms.ttl)?;
        let keys = wire.keys(&self.name);
        let channel = match (self.queueing, &wire.channel) {
            (Queueing::Unwanted, _) => "",
            (Queueing::Wanted, Some(channel)) => channel.address(),
            (Queueing::Wanted, None) => Channel::NONE,
        };
        let ttl = self.terms.ttl.as_millis();
        let asked = |script: &'static Drawing| {
            Call::drawing(script, server_info, keys, &[])
                .arg(self.floor.map_or(0, FencingToken::get))
                .arg(to_millis(server_info.dwell()))
                .arg(Key::Lead(keys))
                .arg(of_owner(self.owner))
                .arg_fmt(format_args!("{ttl} {} {channel} {}", self.width.get(), stamped(&self.note)))
        };
        let mode = self.terms.mode;
        Ok(match self.replaces {
            Some(old) => asked(&script::REPLACE).arg(limit_of(mode)).arg(of_owner(old)).arg(replaced_for(self.terms)),
            None if mode == Mode::Exclusive => asked(&script::ACQUIRE),
            None => {
                let call = asked(&script::SHARE).arg(limit_of(mode));
                match self.fairness {
                    Fairness::Fair => call,
                    Fairness::Barging => call.arg("barging"),
                }
            }
        })
    }

    fn read(&self, Line { wire, .. }: Line<'_>, reply: Value) -> Result<Answer, Failure> {
        if let Int(low) = reply {
            return fresh_grant(self, low).ok_or_else(Failure::strange_answer);
        }
        let parts: Vec<Value> = read(reply)?;
        if let [Text(word), Int(number)] = parts.as_slice() {
            return Err(match word.as_slice() {
                b"dwells" => Failure::dwells(remaining(*number)),
                _ => refused(self.terms.mode, word, *number).unwrap_or_else(Failure::strange_answer),
            });
        }
        let mut answer = answer(self, &parts).ok_or_else(Failure::strange_answer)?;
        if let (Answer::Queued { position, valid_for, .. }, Some(channel)) = (&mut answer, &wire.channel) {
            if let Some(Int(1)) = parts.get(5) {
                channel.unheard();
            }
            if !channel.is_open() {
                *valid_for = untold(*position).min(*valid_for);
            }
        }
        Ok(answer)
    }

    fn gives(&self, answer: Option<&Answer>) -> bool {
        answer.is_none_or(|answer| matches!(answer, Answer::Granted { .. }))
    }
}

fn untold(position: u32) -> Duration {
    UNTOLD_STEP.saturating_mul(position).max(UNTOLD_MIN)
}

fn fresh_grant(claim: &Claim, low: i64) -> Option<Answer> {
    let high = low.checked_add_unsigned(claim.width.get() - 1)?;
    granted(claim, [low, high], Slots::NONE, false)
}

/// The limit in force may be another one than that of the claim.
fn granted_under(claim: &Claim, limit: i64, tokens: [i64; 2], slots: Slots, wanted: bool) -> Option<Answer> {
    match claim.terms.mode.limit() {
        Some(_) => granted(&claim.in_mode(claim.terms.mode.under(limit_from(limit)?)), tokens, slots, wanted),
        None => granted(claim, tokens, slots, wanted),
    }
}

fn granted(claim: &Claim, [low, high]: [i64; 2], slots: Slots, wanted: bool) -> Option<Answer> {
    let tokens = TokenRange::new(low.try_into().ok()?, high.try_into().ok()?).ok()?;
    let count = usize::try_from(claim.terms.mode.count()).ok()?;
    let lease = (slots.get().len() == count).then(|| claim.lease_of(tokens, slots))?;
    Some(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted })
}

fn answer(claim: &Claim, parts: &[Value]) -> Option<Answer> {
    let [Text(word), parts @ ..] = parts else { return None };
    let slots = |text: &[u8]| slots(std::str::from_utf8(text).ok()?);
    match (word.as_slice(), parts) {
        (b"granted", [Int(low), Int(high)]) => granted(claim, [*low, *high], Slots::NONE, false),
        (b"granted", [Int(low), Int(high), Text(text), Int(wanted)]) => {
            granted(claim, [*low, *high], slots(text)?, *wanted != 0)
        }
        (b"granted", [Int(low), Int(high), Text(text), Int(wanted), Int(limit)]) => {
            granted_under(claim, *limit, [*low, *high], slots(text)?, *wanted != 0)
        }
        (b"held", [Text(value), Int(pttl)]) => {
            Some(Answer::Busy { remaining: remaining(*pttl), holder: Stored::holder(value), drawn: None })
        }
        (b"queued", [Text(value), Int(pttl), Int(position), Int(place), Int(_unheard), drawn @ ..]) => {
            Some(Answer::Queued {
                position: u32::try_from(*position).ok()?,
                remaining: remaining(*pttl),
                valid_for: Duration::from_millis(u64::try_from(*place).ok()?),
                holder: Stored::holder(value),
                drawn: match drawn {
                    [] => None,
                    [Text(digits)] => token(std::str::from_utf8(digits).ok()?),
                    _ => return None,
                },
            })
        }
        (_, _) => None,
    }
}

impl Question for &ReleaseRequest {
    type Answer = Released;
    const OPERATION: Operation = Operation::Release;
    const RETRY: Retry = Retry::Once;

    fn call(&self, Line { wire, server_info, attempt }: Line<'_>) -> Result<Call, Failure> {
        let keys = wire.keys(&self.name);
        let script = if self.keep.is_some() { &script::KEEP } else { &script::RELEASE };
        let call = Call::drawing(script, server_info, keys, &[]).arg(Key::Lead(keys));
        let call = match self.certainty {
            Certainty::Answered => call,
            Certainty::Unknown => call.alone(),
        };
        // The first attempt may have handed the lock over, at a server whose data is lost.
        let evidence = if attempt.first.is_some() { Evidence::Nothing } else { self.evidence };
        let call = call.arg(of_owner(self.owner));
        let call = match (self.keep, self.certainty, server_info.failover.on(), evidence) {
            (Some(time), ..) => call.arg(of_owner(self.owner.kept())).arg(keep_for(time)),
            (None, _, OnFailover::Dwell, Evidence::Nothing) => call.alone().arg("doubtful"),
            (None, Certainty::Unknown, ..) => call.arg("valid"),
            (None, Certainty::Answered, ..) => call,
        };
        Ok(match self.certainty {
            Certainty::Answered => call,
            Certainty::Unknown => call.arg(tombstone_life(self.terms)),
        })
    }

    fn read(&self, line: Line<'_>, reply: Value) -> Result<Released, Failure> {
        match read::<i64>(reply)? {
            1 => Ok(line.released(Released::Released)),
            2 => Ok(line.released(Released::Left)),
            0 => Ok(line.released(Released::NotHeld)),
            _ => Err(Failure::strange_answer()),
        }
    }

    /// A lock that is kept: nobody may have it for a while, which a promoted replica has to know. Other releases give nothing.
    fn gives(&self, answer: Option<&Released>) -> bool {
        self.keep.is_some() && answer.is_none_or(|answer| *answer == Released::Released)
    }
}

impl Question for &Lease {
    type Answer = Fenced;
    const OPERATION: Operation = Operation::Fence;

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        if self.terms.mode == Mode::Exclusive {
            return Ok(look_at_holder(wire, &self.name));
        }
        let keys = wire.keys(&self.name);
        Ok(Call::script(&script::FENCE, &[Key::Lock(keys), Key::Waiters(keys)])
            .arg(self.owner.to_wire().to_string())
            .arg(of_tokens(self.tokens)))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Fenced, Failure> {
        let value = match (self.terms.mode, reply) {
            (Mode::Exclusive, reply) => match seen_one(reply)? {
                Seen::Value(seen) => seen.value,
                Seen::Nothing | Seen::OtherKind => return Ok(Fenced::NotHeld),
            },
            (_, Text(value)) => value,
            (_, Int(1)) => return Ok(Fenced::Acknowledged),
            (_, _) => return Ok(Fenced::NotHeld),
        };
        match Stored::read(&value) {
            Some(stored) if stored.owner == self.owner && stored.tokens == self.tokens => Ok(Fenced::Acknowledged),
            Some(stored) if stored.tokens.low() > self.tokens.high() => Ok(Fenced::Higher(stored.tokens.low())),
            Some(_) | None => Ok(Fenced::NotHeld),
        }
    }
}

/// How long a lock is kept, in milliseconds: not for less than was asked for.
fn keep_for(time: Duration) -> u64 {
    to_millis(time.saturating_add(Duration::from_nanos(999_999)))
}

/// How long the tombstone lives that a release leaves, in milliseconds.
pub(crate) fn tombstone_life(terms: Terms) -> u64 {
    to_millis(terms.ttl.get().max(LATE_MAX))
}

/// How long the tombstone of a replaced owner lives, in milliseconds. That owner's last claim was sent before it was granted, so what may
/// still arrive is a copy of it; and one that comes even later takes a free lock for no longer than the ttl.
fn replaced_for(terms: Terms) -> u64 {
    to_millis(terms.ttl.get().min(LATE_MAX))
}

#[cfg(test)]
mod tests {
    use lock_core::{Fairness, Note, Owner, Slots, Terms, Ttl, Width};

    use super::*;
    use crate::failover::Failover;
    use crate::script::Counting;
    use crate::server::server_info::ServerInfo;
    use crate::wire::{Attempt, Wire};

    fn read_as<Q: Question>(question: Q, reply: Value) -> Result<Q::Answer, Failure> {
        let wire = Wire { server: "redis://h".into(), ..Wire::handed_in() };
        let (run_id, replid) = (String::new(), String::new());
        let counting = Counting::Stored;
        let server_info = ServerInfo { run_id, replid, counting, ..ServerInfo::UNKNOWN.clone() };
        question.read(Line { wire: &wire, server_info: &server_info, attempt: Attempt::default() }, reply)
    }

    /// The first attempt may have handed the lock over, at a server whose data is gone.
    #[test]
    fn a_release_that_is_sent_again_proves_nothing() {
        let failover = Failover::new(OnFailover::Dwell, None);
        let server_info = ServerInfo { failover, ..ServerInfo::UNKNOWN.clone() };
        let wire = Wire { server: "redis://h".into(), ..Wire::handed_in() };
        let broke = Failure::no_answer("redis://h", Duration::ZERO);
        let (name, terms) = ("a".parse().unwrap(), Terms::exclusive(Ttl::DEFAULT));
        let (certainty, evidence) = (Certainty::Answered, Evidence::ValidHold);
        let request = ReleaseRequest { name, owner: owner(1), terms, certainty, keep: None, evidence };
        for (attempt, is_doubtful) in [(Attempt::default(), false), (Attempt::after(&broke), true)] {
            let call = (&request).call(Line { wire: &wire, server_info: &server_info, attempt }).ok().unwrap();
            assert_eq!(call.parts().last() == Some(b"doubtful"), is_doubtful);
            assert_eq!(call.many.is_none(), is_doubtful);
        }
    }

    fn text(text: &str) -> Value {
        Text(text.as_bytes().to_vec())
    }

    fn owner(byte: u8) -> Owner {
        Owner::from_random([byte; 16])
    }

    /// What a lock holds, as it is seen there.
    fn stored(byte: u8, tokens: &str) -> Value {
        let value = text(&format!("{}{tokens}:1@h", of_owner(owner(byte))));
        Value::Array(vec![Value::Array(vec![value, Int(1000), Int(0)])])
    }

    #[test]
    fn a_lease_stands_only_with_its_own_owner_and_tokens() {
        let (name, terms) = ("a".parse().unwrap(), Terms::exclusive(Ttl::DEFAULT));
        let tokens = TokenRange::above(6, Width::for_waiters(3)).unwrap();
        let lease = Lease { name, owner: owner(1), tokens, terms, slots: Slots::NONE };
        let token = |number| FencingToken::new(number).unwrap();
        for (byte, tokens, expected) in [
            (1, "7:9", Fenced::Acknowledged),
            (1, "7:8", Fenced::NotHeld),
            (2, "7:9", Fenced::NotHeld),
            (2, "9:9", Fenced::NotHeld),
            (2, "1:2", Fenced::NotHeld),
            (2, "10:12", Fenced::Higher(token(10))),
            (1, "10:12", Fenced::Higher(token(10))),
        ] {
            assert_eq!(read_as(&lease, stored(byte, tokens)).ok(), Some(expected), "{byte} {tokens}");
        }
    }

    #[test]
    fn an_answer_in_other_words_is_strange() {
        let (name, terms, note) = ("a".parse().unwrap(), Terms::exclusive(Ttl::DEFAULT), Note::from_wire("1@h"));
        let (width, queueing) = (Width::ONE, Queueing::Wanted);
        let claim = Claim {
            name,
            owner: owner(1),
            terms,
            width,
            floor: None,
            note,
            queueing,
            replaces: None,
            fairness: Fairness::Fair,
            kind: lock_core::NameKind::Lock,
        };
        let value = text(&format!("{}7:9:1@h", of_owner(owner(2))));
        let numbers = |count: usize| vec![Int(7); count];
        for (word, rest) in [
            ("granted", numbers(2)),
            ("held", vec![value.clone(), Int(7)]),
            ("queued", [vec![value.clone()], numbers(3), vec![Int(0)]].concat()),
        ] {
            let said = |word: &str| Value::Array([vec![text(word)], rest.clone()].concat());
            assert!(read_as(&claim, said(word)).is_ok(), "{word}");
            assert!(read_as(&claim, said("refused")).is_err(), "in place of {word}");
        }
    }
}
