//! One command to a Redis, with what belongs to it.

use std::fmt;

use redis::{Arg, Cmd, Pipeline, RedisResult, RedisWrite, ToRedisArgs, Value};

use crate::hash_slot::HashSlot;
use crate::keys::{Key, Keys, Scope};
use crate::replicas::{Wait, with_wait};
use crate::script::{Drawing, Many, Script};
use crate::server::server_info::ServerInfo;

/// The size of most commands, so that space is allocated once.
const ARGS_ROUGHLY: usize = 12;
const BYTES_ROUGHLY: usize = 288;

/// What a script's text takes the place of: the command and the script's hash.
const COMMAND_AND_SCRIPT: usize = 2;

/// What comes before the keys of a script: the command, the script's hash, and the number of keys.
pub(crate) const SCRIPT_AND_COUNT: usize = 3;

/// One command, and the script to load if the server does not know it.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) command: Cmd,
    pub(crate) script: Option<&'static Script>,
    /// The script for several locks, if this request may be sent together with others.
    pub(crate) many: Option<&'static Many>,
    /// What its answer waits for besides.
    pub(crate) wait: Option<Wait>,
    /// The hash slot of a cluster whose counter has to be verified before.
    pub(crate) slot: Option<HashSlot>,
    /// Whether the server owns the keys.
    pub(crate) ownership: Ownership,
}

/// Whether a server owns the keys of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ownership {
    #[default]
    Owned,
    /// Their hash slot is moving there, and the server runs the command only if it is asked to.
    Moving,
}

impl Call {
    pub(crate) fn plain(command: Cmd) -> Self {
        Self { command, ..Self::default() }
    }

    /// A script with its keys.
    pub(crate) fn script<K: ToRedisArgs>(script: &'static Script, keys: &[K]) -> Self {
        Self::script_over(script, keys.len()).arg(keys)
    }

    fn script_over(script: &'static Script, count: usize) -> Self {
        let mut command = Cmd::with_capacity(ARGS_ROUGHLY, BYTES_ROUGHLY);
        command.arg("EVALSHA").arg(script.hash()).arg(count);
        Self { script: Some(script), many: script.many(), ..Self::plain(command) }
    }

    /// A script that depends on the counter of this lock, with its first keys and these. In a cluster it goes alone, and its last key is
    /// one that is never there.
    pub(crate) fn drawing(
        script: &'static Drawing,
        server_info: &ServerInfo,
        lock: Keys<'_>,
        more: &[Key<'_>],
    ) -> Self {
        let (script, scope) = (script.counting(server_info.counting), lock.scope());
        let keys = [Key::Counter(scope), server_info.failover.key(scope), Key::Lock(lock)];
        let call = |count| Self::script_over(script, keys.len() + more.len() + count).arg(&keys).arg(more);
        match scope {
            Scope::Database => call(0),
            Scope::HashSlot(slot) => Self { slot: Some(slot), ..call(1).arg(Key::NoDwell(scope)).alone() },
        }
    }

    /// The same, but never sent together with others.
    pub(crate) fn alone(self) -> Self {
        Self { many: None, ..self }
    }

    /// The same with the text of its script, which the server then cannot have forgotten.
    pub(crate) fn in_full(self) -> Self {
        let Some(script) = self.script else { return self };
        let mut command = Cmd::with_capacity(ARGS_ROUGHLY, BYTES_ROUGHLY + script.text().len());
        command.arg("EVAL").arg(script.text());
        for part in self.command.args_iter().skip(COMMAND_AND_SCRIPT) {
            if let Arg::Simple(part) = part {
                command.arg(part);
            }
        }
        Self { command, ..self.alone() }
    }

    /// The same for a server that does not own the hash slot yet.
    pub(crate) fn asking(self) -> Self {
        Self { ownership: Ownership::Moving, ..self.alone() }
    }

    /// The keys of its script, and then the arguments.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.command
            .args_iter()
            .skip(SCRIPT_AND_COUNT)
            .map(|part| if let Arg::Simple(part) = part { part } else { &[] })
    }

    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn arg_fmt(mut self, arg: impl fmt::Display) -> Self {
        self.command.write_arg_fmt(arg);
        self
    }

    /// The command with what belongs right before it and after it on its connection.
    pub(crate) fn pipeline(&self) -> Pipeline {
        let mut pipeline = redis::pipe();
        if self.ownership == Ownership::Moving {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(self.command.clone());
        self.wait.iter().for_each(|wait| _ = pipeline.add_command(wait.command()));
        pipeline
    }

    /// The reply, from the replies to all of these.
    pub(crate) fn reply_of(&self, mut replies: Vec<Value>) -> RedisResult<Value> {
        let waited = self.wait.and_then(|_| replies.pop()).map(Ok);
        self.reply(Ok(replies.pop().unwrap_or(Value::Nil)), waited.as_ref())?.extract_error()
    }

    /// Its reply, with that to the wait for replicas if it waits for them.
    pub(crate) fn reply(&self, own: RedisResult<Value>, waited: Option<&RedisResult<Value>>) -> RedisResult<Value> {
        match (self.wait, waited) {
            (Some(_), Some(waited)) => with_wait(own, waited),
            (_, _) => own,
        }
    }
}
