//! What users do: while everything goes wrong, and at latches afterwards.

use std::time::Duration;

use lock_core::Ttl;

use crate::env::Plan;
use crate::wish::{Act, Part, Use, Wish};
use crate::world::{Stores, World};

/// For how long latches are to last.
const LATCH_TTLS: [Duration; 3] = [Duration::from_secs(3), Duration::from_secs(20), Duration::from_secs(3600)];
/// After this time nobody repeats a request from before.
const LATCHES_AFTER: Duration = Duration::from_secs(30);

impl<S: Stores> World<S> {
    /// What a user does who has just arrived.
    pub(crate) fn any_act(&mut self) -> Act {
        let dice = &mut self.env.dice;
        let latch = if self.latches.is_empty() || dice.chance(750) { None } else { dice.pick(&self.latches) };
        let ttl = dice.pick(&LATCH_TTLS).and_then(|ttl| Ttl::new(ttl).ok()).unwrap_or(Ttl::DEFAULT);
        if let Some(name) = latch {
            return Act::Latch { name, wanted: Use::any(dice), ttl };
        }
        let set = if self.sets.is_empty() || dice.chance(900) { None } else { dice.pick(&self.sets) };
        Act::Join(match set {
            Some([site, then]) => Wish { part: Part::First { then }, ..Wish::patient(dice, site, self.ttls) },
            None => Wish::any(dice, self.names.len(), self.ttls),
        })
    }

    /// All is well: after some time a latch is reset, and each process arrives there and waits for the others.
    pub(crate) fn open_latches(&mut self) {
        let processes: Vec<_> = self.processes.keys().copied().collect();
        let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
        for name in self.latches.clone() {
            let ttl = Ttl::MAX;
            let mut plan = |after: u64, process, wanted| {
                let act = Act::Latch { name: name.clone(), wanted, ttl };
                self.env.plan(LATCHES_AFTER + Duration::from_secs(after), Plan::Act(process, act));
            };
            if let Some(first) = processes.first() {
                plan(0, *first, Use::Reset);
                plan(2, *first, Use::Expect(count));
            }
            for process in &processes {
                plan(1, *process, Use::Wait(None));
                plan(3, *process, Use::Arrive(None));
            }
        }
    }
}
