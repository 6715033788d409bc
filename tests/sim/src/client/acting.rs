//! What users do in their process, and what they are told.

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::{Input, Join, Leaving, TurnId};
use lock_core::{Hold, Moment, Note, Patience, Terms};

use super::user::User;
use super::{Backend, Process};
use crate::clock::Time;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::Holding;
use crate::wish::{Act, Wait, Wish};

/// How long a write takes from its check to the resource.
const WRITE_WITHIN: Duration = Duration::from_millis(3);

impl<B: Backend> Process<B> {
    pub(super) fn act(&mut self, env: &mut Env<B::Talk>, now: Moment, act: Act) {
        match act {
            Act::Join(wish) => self.join(env, now, wish),
            Act::Leave { site, turn } => self.leave(env, site, turn),
            Act::GiveUp { site } => {
                let waiting = self.sites[site].users.iter().filter(|(_, user)| user.hold.is_none());
                for turn in waiting.map(|(turn, _)| *turn).collect::<Vec<_>>() {
                    self.leave(env, site, turn);
                }
            }
            Act::Check { site, turn } => {
                let Some(user) = self.sites[site].users.get(&turn) else { return };
                if let Some(hold) = user.hold.as_ref().filter(|hold| hold.check(now).is_ok()) {
                    let write = Act::Write { site, turn, hold: Arc::clone(hold) };
                    let later = env.dice.between(Duration::ZERO, WRITE_WITHIN);
                    env.plan(later, Plan::Act(self.id, write));
                }
            }
            Act::Write { site, turn, hold } => {
                // The previous holder has already written.
                if self.sites[site].users.contains_key(&turn) || hold.lost().is_some() {
                    env.watch.written(&hold, hold.remaining(now), &mut env.tally);
                }
            }
        }
    }

    fn leave(&mut self, env: &mut Env<B::Talk>, site: usize, turn: TurnId) {
        let here = &mut self.sites[site];
        if here.users.remove(&turn).is_some_and(|user| user.hold.is_none()) {
            env.fired(Fault::Cancelled);
        }
        here.holder.take_if(|(holder, _)| *holder == turn);
        self.soon.push_back((site, Input::Leave(Leaving::now(turn))));
    }

    fn join(&mut self, env: &mut Env<B::Talk>, now: Moment, wish: Wish) {
        let number = env.number();
        let (turn, site, ttl, max_hold) = (TurnId(number), wish.site, wish.ttl, wish.max_hold);
        let patience = match wish.wait {
            Wait::Not => Patience::Never,
            Wait::For(time) => Patience::Until(now + time),
            Wait::Forever => Patience::Forever,
        };
        if let Some(cancel) = wish.cancel {
            env.plan(cancel, Plan::Act(self.id, Act::Leave { site, turn }));
        }
        self.sites[site].users.insert(turn, User { wish, hold: None });
        let note = Note::from_wire("1@sim");
        self.soon.push_back((
            site,
            Input::Join(Join { turn, terms: Terms::exclusive(ttl), patience, attempts: None, max_hold, note }),
        ));
    }

    /// Somebody has its turn.
    pub(super) fn admit(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, turn: TurnId, hold: &Arc<Hold>) {
        let site = &mut self.sites[index];
        let Some(user) = site.users.get_mut(&turn) else {
            env.watch.admitted_a_stranger(&site.name, turn);
            return;
        };
        // The facade checks the hold once more.
        if hold.check(now).is_ok() {
            env.watch.admitted(hold);
        }
        env.note(format_args!("{:?} admits {turn:?} of {} with {:?}", self.id, site.name, hold));
        user.hold = Some(Arc::clone(hold));
        site.holder = Some((turn, Arc::clone(hold)));
        let hold_for = user.wish.hold_for;
        env.plan(hold_for, Plan::Act(self.id, Act::Leave { site: index, turn }));
        for _ in 0..2 {
            let at = env.dice.between(Duration::ZERO, hold_for);
            env.plan(at, Plan::Act(self.id, Act::Check { site: index, turn }));
        }
    }

    /// Who holds here now, as it sees it itself.
    pub(crate) fn holdings(&self, at: Time) -> impl Iterator<Item = Holding<'_>> {
        let (now, clock) = (self.clock.read(at), self.clock);
        let holds = self.sites.iter().filter_map(|site| site.holder.as_ref()).map(|(_, hold)| hold.as_ref());
        let valid = holds.filter(move |hold| !hold.remaining(now).is_zero());
        valid.map(move |hold| Holding { hold, until: clock.when(hold.valid_until()) })
    }
}
