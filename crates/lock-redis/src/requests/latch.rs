//! Requests about latches as questions, and the meaning of their answers. No I/O.

use lock_core::Operation;
use lock_core::latch::{Act, Count, Generation, LatchState, Request, Seen, Watching};
use redis::Value;

use crate::channel::Channel;
use crate::failure::Failure;
use crate::script;
use crate::wire::{Call, Line, Question, Retry, Wire, read};

impl Question for &Request {
    type Answer = Seen;
    const OPERATION: Operation = Operation::Latch;
    /// The script carries out a request once, however often it is sent.
    const RETRY: Retry = Retry::Once;

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys = wire.keys(&self.name);
        let call = |act: &str| Call::script(&script::LATCH, &keys.latch()).arg(act).arg(keys.to_string());
        Ok(match &self.act {
            Act::Arrive { id, call: number, ttl } => {
                call("arrive").arg(ttl.as_millis()).arg(id.as_str()).arg(number.to_string())
            }
            Act::Make { ttl } => call("make").arg(ttl.as_millis()),
            Act::Expect { count, generation, ttl } => {
                call("expect").arg(ttl.as_millis()).arg(count.get()).arg(generation.get())
            }
            Act::Reset { generation, ttl } => call("reset").arg(ttl.as_millis()).arg(generation.get()),
            Act::Look { watching } => call("look").arg(inbox(wire, *watching)),
        })
    }

    fn read(&self, Line { wire, .. }: Line<'_>, reply: Value) -> Result<Seen, Failure> {
        let [generation, expected, arrived, completed, told]: [u64; 5] =
            read::<Vec<u64>>(reply)?.try_into().map_err(|_| Failure::strange_answer())?;
        let short = |number| u32::try_from(number).map_err(|_| Failure::strange_answer());
        let told = match (told, &wire.channel) {
            (1, Some(channel)) => channel.is_open(),
            (2, Some(channel)) => {
                channel.unheard();
                false
            }
            (_, _) => false,
        };
        if generation == 0 {
            return Ok(Seen { state: None, told });
        }
        let mut state = LatchState::new(Generation::new(generation));
        if expected != 0 {
            state.expected = Some(Count::new(short(expected)?).map_err(|_| Failure::strange_answer())?);
        }
        state.arrived = short(arrived)?;
        state.completed = (completed != 0).then(|| Generation::new(completed));
        Ok(Seen { state: Some(state), told })
    }
}

fn inbox(wire: &Wire, watching: Watching) -> &str {
    match (watching, &wire.channel) {
        (Watching::Wanted, Some(channel)) => channel.address(),
        (Watching::Wanted, None) | (Watching::Unwanted, _) => Channel::NONE,
    }
}
