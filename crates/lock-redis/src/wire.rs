//! The verbs as questions to Redis, and what its answers say; the same for both colours. No I/O.

use std::time::Duration;

use lock_core::{
    Answer, Certainty, Claim, Fenced, FencingToken, Lease, Mode, Operation, Parting, Prefix, Released, Renewed,
};
use redis::{Client, Cmd, FromRedisValue, Script, ToRedisArgs, Value, from_redis_value};

use crate::connect::server_of;
use crate::failure::{Failure, Scene, Stage};
use crate::look::{Seen, look_at, seen_one};
use crate::script;
use crate::value::{COUNTER, MARKER, Stored, of_lease, of_owner, tombstone};

/// How many leases one renewal script takes, so that nobody else waits for it longer than a fraction of a millisecond.
pub(crate) const LEASES_PER_SCRIPT: usize = 100;
/// The shortest life of a tombstone. Chosen: longer than a network holds a request back, but for rare cases.
const TOMBSTONE_MIN: Duration = Duration::from_secs(10);
/// What a token is drawn above, beside the tokens drawn so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Nothing: every connection verified the counter before it carried anything.
    Stored,
    #[cfg(any(feature = "async", feature = "r2d2"))]
    /// The server's clock: the connections are not ours, and nobody verified anything.
    Clock,
}

/// What is the same for all questions of a client.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) prefix: Prefix,
    pub(crate) counting: Counting,
    /// The server as it is shown to users.
    pub(crate) server: String,
}

impl Wire {
    /// To the server of a client, over connections that are made here.
    pub(crate) fn own(client: &Client) -> Self {
        Self { prefix: Prefix::default(), counting: Counting::Stored, server: server_of(client) }
    }

    /// To a server that only the connections know which were handed in.
    #[cfg(any(feature = "async", feature = "r2d2"))]
    pub(crate) fn handed_in() -> Self {
        Self { prefix: Prefix::default(), counting: Counting::Clock, server: "the server".to_owned() }
    }

    pub(crate) fn with_prefix(mut self, prefix: &Prefix) -> Self {
        self.prefix = prefix.clone();
        self
    }

    /// The scene of a request over a connection that is there.
    pub(crate) fn asked(&self, within: Duration) -> Scene<'_> {
        Scene { stage: Stage::Asked, server: &self.server, within }
    }
}

/// One command, and the script to load where the server does not know it.
pub(crate) struct Call {
    pub(crate) command: Cmd,
    pub(crate) script: Option<&'static Script>,
}

impl Call {
    pub(crate) fn plain(command: Cmd) -> Self {
        Self { command, script: None }
    }

    pub(crate) fn script<K: ToRedisArgs>(script: &'static Script, keys: &[K]) -> Self {
        let mut command = Cmd::new();
        command.arg("EVALSHA").arg(script.get_hash()).arg(keys.len()).arg(keys);
        Self { command, script: Some(script) }
    }

    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }
}

/// A question to Redis: how it is asked, and how its answer is read.
pub(crate) trait Question {
    /// What is being done, for errors.
    const OPERATION: Operation;
    /// What an answer says.
    type Answer;

    /// The command that asks.
    fn call(&self, wire: &Wire) -> Result<Call, Failure>;

    /// Reads the reply.
    fn read(&self, wire: &Wire, reply: Value) -> Result<Self::Answer, Failure>;
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
    const OPERATION: Operation = Operation::Acquire;
    type Answer = Answer;

    fn call(&self, wire: &Wire) -> Result<Call, Failure> {
        if self.mode != Mode::Exclusive {
            return Err(Failure::unsupported("only exclusive locks"));
        }
        let key = wire.prefix.key(self.name.as_str());
        let tombstone = tombstone(&key, self.owner);
        let call = Call::script(&script::ACQUIRE, &[key.as_str(), COUNTER, &tombstone])
            .arg(of_owner(self.owner))
            .arg(self.ttl.as_millis())
            .arg(self.width.get())
            .arg(self.floor.map_or(0, FencingToken::get))
            .arg(self.note.to_wire())
            .arg(match wire.counting {
                Counting::Stored => "stored",
                #[cfg(any(feature = "async", feature = "r2d2"))]
                Counting::Clock => "clock",
            });
        Ok(call)
    }

    fn read(&self, _wire: &Wire, reply: Value) -> Result<Answer, Failure> {
        let (verdict, value, pttl): (String, Vec<u8>, i64) = read(reply)?;
        match (verdict.as_str(), Stored::read(&value)) {
            ("granted", Some(stored)) if stored.owner == self.owner => {
                let lease = Lease { name: self.name.clone(), owner: self.owner, tokens: stored.tokens, ttl: self.ttl };
                Ok(Answer::Granted { lease, valid_for: self.ttl.get() })
            }
            ("held", _) => Ok(Answer::Busy { remaining: remaining(pttl), holder: Stored::holder(&value) }),
            _ => Err(Failure::strange_answer()),
        }
    }
}

/// Renews at most [`LEASES_PER_SCRIPT`] leases.
pub(crate) struct Renewal<'a>(pub(crate) &'a [Lease]);

impl Question for Renewal<'_> {
    const OPERATION: Operation = Operation::Renew;
    type Answer = Vec<Renewed>;

    fn call(&self, wire: &Wire) -> Result<Call, Failure> {
        let keys: Vec<_> = self.0.iter().map(|lease| wire.prefix.key(lease.name.as_str())).collect();
        let call = Call::script(&script::RENEW, &keys);
        Ok(self.0.iter().fold(call, |call, lease| call.arg(of_lease(lease)).arg(lease.ttl.as_millis())))
    }

    fn read(&self, _wire: &Wire, reply: Value) -> Result<Vec<Renewed>, Failure> {
        let answers: Vec<i64> = read(reply)?;
        if answers.len() != self.0.len() {
            return Err(Failure::strange_answer());
        }
        let read_one = |(lease, answer): (&Lease, i64)| match answer {
            1 => Renewed::Renewed { valid_for: lease.ttl.get() },
            _ => Renewed::NotHeld,
        };
        Ok(self.0.iter().zip(answers).map(read_one).collect())
    }
}

impl Question for &Parting {
    const OPERATION: Operation = Operation::Release;
    type Answer = Released;

    fn call(&self, wire: &Wire) -> Result<Call, Failure> {
        let key = wire.prefix.key(self.name.as_str());
        let tombstone = tombstone(&key, self.owner);
        let life = match self.certainty {
            Certainty::Answered => Duration::ZERO,
            Certainty::Unknown => self.ttl.get().max(TOMBSTONE_MIN),
        };
        let call = Call::script(&script::RELEASE, &[key.as_str(), &tombstone]);
        Ok(call.arg(of_owner(self.owner)).arg(u64::try_from(life.as_millis()).unwrap_or(u64::MAX)))
    }

    fn read(&self, _wire: &Wire, reply: Value) -> Result<Released, Failure> {
        match read::<i64>(reply)? {
            0 => Ok(Released::NotHeld),
            _ => Ok(Released::Released),
        }
    }
}

impl Question for &Lease {
    const OPERATION: Operation = Operation::Fence;
    type Answer = Fenced;

    fn call(&self, wire: &Wire) -> Result<Call, Failure> {
        Ok(look_at(wire, &self.name))
    }

    fn read(&self, _wire: &Wire, reply: Value) -> Result<Fenced, Failure> {
        let Seen::Value(value, _) = seen_one(reply)? else { return Ok(Fenced::NotHeld) };
        match Stored::read(&value) {
            Some(stored) if stored.owner == self.owner && stored.tokens == self.tokens => Ok(Fenced::Acknowledged),
            Some(stored) if stored.tokens.low() > self.tokens.high() => Ok(Fenced::Higher(stored.tokens.low())),
            Some(_) | None => Ok(Fenced::NotHeld),
        }
    }
}

/// The first words on a new connection: asks who the server is, and loads the scripts, so that no later request has to
/// be sent twice and so overtaken.
pub(crate) fn greeting() -> redis::Pipeline {
    let mut greeting = redis::pipe();
    greeting.cmd("INFO").arg("server");
    for text in script::TEXTS {
        greeting.cmd("SCRIPT").arg("LOAD").arg(text);
    }
    greeting
}

/// Verifies the counter against the server that answered the greeting.
pub(crate) fn verification(greeted: Vec<Value>) -> Result<Call, Failure> {
    let info: String = read(greeted.into_iter().next().unwrap_or_default())?;
    let run_id = info.lines().find_map(|line| line.strip_prefix("run_id:")).ok_or_else(Failure::strange_answer)?;
    Ok(Call::script(&script::VERIFY, &[COUNTER, MARKER]).arg(run_id.trim()))
}
