//! The verbs as questions to Redis, and what its answers say; the same for both colours. No I/O.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{
    Answer, Certainty, Claim, EventSink, Fenced, FencingToken, Lease, Operation, Prefix, Queueing, ReleaseRequest,
    Released, Renewed, TokenRange, Waiting,
};
use redis::{Client, Cmd, FromRedisValue, ToRedisArgs, Value, from_redis_value};

use crate::connect::server_of;
use crate::failure::{Failure, Scene, Stage};
use crate::greeting::Peer;
use crate::inbox::Inbox;
use crate::look::{Seen, look_at_holder, seen_one};
use crate::script::{self, Script};
use crate::value::{Key, Keys, Stored, of_lease, of_owner};

/// How many leases one renewal script takes, so that nobody else waits for it longer than a fraction of a millisecond.
pub(crate) const LEASES_PER_SCRIPT: usize = 100;
/// The shortest life of a tombstone. Chosen: longer than a network holds a request back, but for rare cases.
const TOMBSTONE_MIN: Duration = Duration::from_secs(10);

/// How long a place is said to last while the inbox is closed, times its position, so that its owner asks again instead of
/// waiting to be told: a third of it later.
const UNTOLD_STEP: Duration = Duration::from_millis(30);
/// ... and no less, near the head of the queue.
const UNTOLD_MIN: Duration = Duration::from_millis(300);

/// What is the same for all questions of a client.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) prefix: Prefix,
    /// The server as it is shown to users.
    pub(crate) server: String,
    /// Where waiters are told of their grants; nowhere if they have to ask.
    pub(crate) inbox: Option<Arc<Inbox>>,
}

impl Wire {
    /// To the server of a client, over connections that are made here.
    pub(crate) fn own(client: &Client, inbox: Option<Arc<Inbox>>) -> Self {
        Self { prefix: Prefix::default(), server: server_of(client), inbox }
    }

    /// To a server that only the connections know which were handed in.
    #[cfg(any(feature = "async", feature = "r2d2"))]
    pub(crate) fn handed_in() -> Self {
        Self { prefix: Prefix::default(), server: "the server".to_owned(), inbox: None }
    }

    pub(crate) fn with_prefix(mut self, prefix: &Prefix) -> Self {
        self.prefix = prefix.clone();
        if let Some(inbox) = &self.inbox {
            inbox.set_prefix(prefix);
        }
        self
    }

    /// The same for a connection on which nobody waits.
    pub(crate) fn without_inbox(&self) -> Self {
        Self { inbox: None, ..self.clone() }
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        if let Some(inbox) = &self.inbox {
            inbox.listen(sink);
        }
    }

    pub(crate) fn waiting(&self) -> Waiting {
        if self.inbox.is_some() { Waiting::QueueWithPush } else { Waiting::Queue }
    }

    /// The scene of a request over a connection that is there.
    pub(crate) fn asked(&self, within: Duration) -> Scene<'_> {
        Scene { stage: Stage::Asked, server: &self.server, within }
    }
}

/// What most commands need: room that is made once.
const ARGS_ROUGHLY: usize = 16;
const BYTES_ROUGHLY: usize = 512;

/// One command, and the script to load where the server does not know it.
pub(crate) struct Call {
    pub(crate) command: Cmd,
    pub(crate) script: Option<&'static Script>,
}

impl Call {
    pub(crate) fn plain(command: Cmd) -> Self {
        Self { command, script: None }
    }

    /// A script with its keys.
    pub(crate) fn script<K: ToRedisArgs>(script: &'static Script, keys: &[K]) -> Self {
        let mut command = Cmd::with_capacity(ARGS_ROUGHLY, BYTES_ROUGHLY);
        command.arg("EVALSHA").arg(script.hash()).arg(keys.len()).arg(keys);
        Self { command, script: Some(script) }
    }

    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }
}

/// What a question goes over: what is the same for all of a client's, and who is at the other end this time.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) peer: &'a Peer,
    /// How the first try failed, where this is the retry.
    pub(crate) first: Option<&'a Failure>,
}

impl Line<'_> {
    /// What the answer to a release says. Where a retry finds nothing, the first try may have ended the hold or the place;
    /// not so where another incarnation answers: what broke the connection may have lost the lease as well.
    pub(crate) fn released(self, answer: Released) -> Released {
        match answer {
            Released::NotHeld if self.first.is_some_and(|first| first.broke_at(self.peer)) => Released::Released,
            Released::NotHeld | Released::Released | Released::Left => answer,
        }
    }
}

/// A question to Redis: how it is asked, and how its answer is read.
pub(crate) trait Question {
    /// What an answer says.
    type Answer;

    /// What is being done, for errors.
    fn operation(&self) -> Operation;

    /// The command that asks.
    fn call(&self, line: Line<'_>) -> Result<Call, Failure>;

    /// Reads the reply.
    fn read(&self, line: Line<'_>, reply: Value) -> Result<Self::Answer, Failure>;

    /// Whether it may be asked once more where the connection broke under it.
    fn retry(&self) -> Retry {
        Retry::Never
    }
}

/// What becomes of a question whose connection broke before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The error is the answer: an acquire that may have taken effect is followed by a release.
    Never,
    /// It is idempotent, and asked again over another connection in what is left of its time.
    Once,
}

/// Takes a reply apart.
pub(crate) fn read<T: FromRedisValue>(reply: Value) -> Result<T, Failure> {
    from_redis_value(reply).map_err(|_| Failure::strange_answer())
}

/// How long until a key expires; `None` for ever.
pub(crate) fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}

impl Question for &Claim {
    type Answer = Answer;

    fn operation(&self) -> Operation {
        Operation::Acquire
    }

    fn call(&self, Line { wire, peer, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys = Keys::of(&wire.prefix, &self.name);
        let inbox = match (self.queueing, &wire.inbox) {
            (Queueing::Unwanted, _) => "",
            (Queueing::Wanted, Some(inbox)) => inbox.address(),
            (Queueing::Wanted, None) => Inbox::NONE,
        };
        let [tombstone, queue] = [keys.tombstone(self.owner), keys.queue()];
        let keys = [keys.lock(), Key::Counter, tombstone, queue, keys.waiters(), keys.numbers()];
        let call = Call::script(script::ACQUIRE.counting(peer.counting), &keys)
            .arg(of_owner(self.owner))
            .arg(self.terms.ttl.as_millis())
            .arg(self.width.get())
            .arg(self.floor.map_or(0, FencingToken::get))
            .arg(self.note.to_wire())
            .arg(inbox);
        Ok(call)
    }

    fn read(&self, Line { wire, .. }: Line<'_>, reply: Value) -> Result<Answer, Failure> {
        if let Value::Int(low) = reply {
            return fresh_grant(self, low).ok_or_else(Failure::strange_answer);
        }
        let parts: Vec<Value> = read(reply)?;
        let mut answer = answer(self, &parts).ok_or_else(Failure::strange_answer)?;
        if let (Some(Value::Int(1)), Some(inbox)) = (parts.get(5), &wire.inbox) {
            inbox.unheard();
        }
        if let (Answer::Queued { position, valid_for, .. }, Some(inbox)) = (&mut answer, &wire.inbox)
            && !inbox.is_open()
        {
            *valid_for = untold(*position).min(*valid_for);
        }
        Ok(answer)
    }
}

fn untold(position: u32) -> Duration {
    UNTOLD_STEP.saturating_mul(position).max(UNTOLD_MIN)
}

fn fresh_grant(claim: &Claim, low: i64) -> Option<Answer> {
    let high = low.checked_add_unsigned(claim.width.get() - 1)?;
    granted(claim, low, high)
}

fn granted(claim: &Claim, low: i64, high: i64) -> Option<Answer> {
    let token = |number: i64| FencingToken::new(u64::try_from(number).ok()?).ok();
    let tokens = TokenRange::new(token(low)?, token(high)?).ok()?;
    let lease = Lease { name: claim.name.clone(), owner: claim.owner, tokens, terms: claim.terms };
    Some(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: false })
}

fn answer(claim: &Claim, parts: &[Value]) -> Option<Answer> {
    match parts {
        [Value::BulkString(word), Value::Int(low), Value::Int(high)] if word == b"granted" => {
            granted(claim, *low, *high)
        }
        [Value::BulkString(word), Value::BulkString(value), Value::Int(pttl)] if word == b"held" => {
            Some(Answer::Busy { remaining: remaining(*pttl), holder: Stored::holder(value), drawn: None })
        }
        [
            Value::BulkString(word),
            Value::BulkString(value),
            Value::Int(pttl),
            Value::Int(position),
            Value::Int(place),
            Value::Int(_unheard),
        ] if word == b"queued" => Some(Answer::Queued {
            position: u32::try_from(*position).ok()?,
            remaining: remaining(*pttl),
            valid_for: Duration::from_millis(u64::try_from(*place).ok()?),
            holder: Stored::holder(value),
            drawn: None,
        }),
        _ => None,
    }
}

/// Renews at most [`LEASES_PER_SCRIPT`] leases.
pub(crate) struct Renewal<'a>(pub(crate) &'a [Lease]);

impl Question for Renewal<'_> {
    type Answer = Vec<Renewed>;

    fn operation(&self) -> Operation {
        Operation::Renew
    }

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys: Vec<_> = self.0.iter().map(|lease| Keys::of(&wire.prefix, &lease.name).lock()).collect();
        let call = Call::script(&script::RENEW, &keys);
        Ok(self.0.iter().fold(call, |call, lease| call.arg(of_lease(lease)).arg(lease.terms.ttl.as_millis())))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Vec<Renewed>, Failure> {
        let lost: Vec<usize> = read(reply)?;
        let renewed = |lease: &Lease| Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false };
        let mut answers: Vec<_> = self.0.iter().map(renewed).collect();
        for number in lost {
            *number.checked_sub(1).and_then(|index| answers.get_mut(index)).ok_or_else(Failure::strange_answer)? =
                Renewed::NotHeld;
        }
        Ok(answers)
    }

    fn retry(&self) -> Retry {
        Retry::Once
    }
}

impl Question for &ReleaseRequest {
    type Answer = Released;

    fn operation(&self) -> Operation {
        Operation::Release
    }

    fn call(&self, Line { wire, peer, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys = Keys::of(&wire.prefix, &self.name);
        let script = script::RELEASE.counting(peer.counting);
        let [lock, queue, waiters] = [keys.lock(), keys.queue(), keys.waiters()];
        Ok(match self.certainty {
            Certainty::Answered => {
                Call::script(script, &[lock, Key::Counter, queue, waiters]).arg(of_owner(self.owner))
            }
            Certainty::Unknown => {
                let tombstone = keys.tombstone(self.owner);
                Call::script(script, &[lock, Key::Counter, queue, waiters, tombstone])
                    .arg(of_owner(self.owner))
                    .arg(tombstone_life(self))
            }
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

    fn retry(&self) -> Retry {
        Retry::Once
    }
}

/// How long a tombstone lives, in milliseconds.
pub(crate) fn tombstone_life(request: &ReleaseRequest) -> u64 {
    to_millis(request.terms.ttl.get().max(TOMBSTONE_MIN))
}

pub(crate) fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Question for &Lease {
    type Answer = Fenced;

    fn operation(&self) -> Operation {
        Operation::Fence
    }

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        Ok(look_at_holder(wire, &self.name))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Fenced, Failure> {
        let Seen::Value(value, ..) = seen_one(reply)? else { return Ok(Fenced::NotHeld) };
        match Stored::read(&value) {
            Some(stored) if stored.owner == self.owner && stored.tokens == self.tokens => Ok(Fenced::Acknowledged),
            Some(stored) if stored.tokens.low() > self.tokens.high() => Ok(Fenced::Higher(stored.tokens.low())),
            Some(_) | None => Ok(Fenced::NotHeld),
        }
    }
}

/// Loads a script that the server has forgotten.
pub(crate) fn load(script: &Script) -> Cmd {
    let mut command = redis::cmd("SCRIPT");
    command.arg("LOAD").arg(script.text());
    command
}
