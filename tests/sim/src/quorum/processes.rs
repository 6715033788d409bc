//! The processes that use a quorum.

use lock_core::{Capabilities, Durability, Moment, Policy, RequestOrder, Waiting};
use lock_redlock::quorum::{Purpose, Quorum};

use super::Mistake;
use super::list::List;
use super::nodes::Nodes;
use super::redlock::{Epochs, Redlock};
use crate::client::{Make, Process};
use crate::clock::Clock;
use crate::env::Plan;
use crate::fault::Fault;
use crate::network::ProcessId;
use crate::world::World;

impl World<Nodes> {
    pub(super) fn make_process(&mut self, list: List) -> Option<Process<Redlock>> {
        let (env, stores) = (&mut self.env, &self.stores);
        let id = ProcessId(env.number());
        let capabilities = Capabilities::new("sim", Waiting::Poll, Durability::ClockFloor)
            .with_shared_counter()
            .with_several_copies()
            .with_ordering(RequestOrder::InOrder);
        let mut policy = Policy::new(capabilities);
        policy.op_timeout = stores.terms.op_timeout;
        if env.dice.chance(500) {
            policy.chain = u32::try_from(env.dice.from(0, 2)).unwrap_or_default();
        }
        let clock = Clock::any(&mut env.dice);
        env.note(format_args!("{id:?} begins: {policy:?}"));
        let mut quorum =
            Quorum::new(&list.addresses(&stores.terms), stores.terms.max_ttl, Box::new(Epochs::of(id))).ok()?;
        quorum.set_blank_dwell(stores.terms.blank_dwell);
        if let Some(rule) = stores.mistake.and_then(Mistake::rule) {
            quorum.turn_off(rule);
        }
        let backend = Redlock::new(id, quorum, list.members(&stores.terms), stores.mistake);
        Some(Process::new(env, Make { id, clock, policy, names: &self.names, backend }))
    }

    /// Lets a process join the world. It looks at the nodes first.
    pub(super) fn begin(&mut self, mut process: Process<Redlock>, purpose: Purpose) {
        let env = &mut self.env;
        let (id, now): (_, Moment) = (process.id, process.clock.read(env.now));
        process.backend.connect(env, now, purpose);
        if env.dice.chance(self.stores.terms.short_lived) {
            env.fired(Fault::ShortLived);
            let life = env.dice.millis(500, 3000);
            env.plan(life, Plan::Death(id));
        }
        self.add_process(process);
    }
}
