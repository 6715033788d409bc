//! What users do in their process, and the answers that they get.

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::{Input, Join, Leaving, TurnId};
use lock_core::{Ability, Hold, Keep, Moment, Note, Patience, Terms, Ttl, drift};

use super::user::User;
use super::{Backend, Process};
use crate::clock::Time;
use crate::dice::Dice;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::Holding;
use crate::wish::{Act, Wait, Wish};

/// How long a lock is kept at most, in milliseconds.
const KEEP_MAX: u64 = 8000;
/// How long a write takes from its check to the resource.
const WRITE_WITHIN: Duration = Duration::from_millis(3);

impl<B: Backend> Process<B> {
    pub(super) fn act(&mut self, env: &mut Env<B::Talk>, now: Moment, act: Act) {
        match act {
            Act::Join(wish) => self.join(env, now, wish),
            Act::Leave { site, turn } => self.leave(env, site, turn),
            Act::Replace { site, turn, ttl } => self.replace(site, turn, ttl),
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
                // The previous holder has already written, and so has a turn under the lease that was replaced.
                let user = self.sites[site].users.get(&turn).and_then(|user| user.hold.as_ref());
                if user.is_some_and(|known| Arc::ptr_eq(known, &hold)) || hold.lost().is_some() {
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
        let held = here.holder.take_if(|(holder, _)| *holder == turn);
        let wish = self.store.abilities.contains(&Ability::Keep) && env.dice.chance(300);
        let keep = wish.then(|| env.dice.millis(1, KEEP_MAX)).and_then(|time| self.store.keep(time).ok());
        if let (Some((_, hold)), Some(time)) = (held, keep.map(Keep::get)) {
            env.fired(Fault::Kept);
            let end = env.now + time.saturating_sub(drift(time));
            env.watch.keeping([Some(hold.lease().owner), here.replacing].into_iter().flatten(), end);
        }
        self.soon.push_back((site, Input::Leave(Leaving { turn, keep })));
    }

    /// A holder wants a ttl that is as long, or longer.
    fn replace(&mut self, site: usize, turn: TurnId, ttl: Ttl) {
        self.soon.push_back((site, Input::Replace { turn, terms: Terms::exclusive(ttl) }));
    }

    /// A turn goes on under another lease.
    pub(super) fn go_on(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, turn: TurnId, hold: &Arc<Hold>) {
        env.fired(Fault::Replaced);
        let site = &mut self.sites[index];
        let (Some(user), Some((holder, known))) = (site.users.get_mut(&turn), &mut site.holder) else {
            env.watch.admitted_a_stranger(&site.name, turn);
            return;
        };
        if *holder != turn || known.check(now).is_err() {
            env.watch.admitted_a_stranger(&site.name, turn);
        }
        env.watch.admitted(hold);
        env.note(format_args!("{:?} replaces the lease of {turn:?} by {hold:?}", self.id));
        *known = Arc::clone(hold);
        user.hold = Some(Arc::clone(hold));
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

    /// A user gets its turn.
    pub(super) fn admit(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, turn: TurnId, hold: &Arc<Hold>) {
        let site = &mut self.sites[index];
        let Some(user) = site.users.get_mut(&turn) else {
            env.watch.admitted_a_stranger(&site.name, turn);
            return;
        };
        env.watch.begun(env.now, &site.name);
        // The facade checks the hold once more.
        if hold.check(now).is_ok() {
            env.watch.admitted(hold);
        }
        env.note(format_args!("{:?} admits {turn:?} of {} with {:?}", self.id, site.name, hold));
        user.hold = Some(Arc::clone(hold));
        site.holder = Some((turn, Arc::clone(hold)));
        let hold_for = user.wish.hold_for;
        env.plan(hold_for, Plan::Act(self.id, Act::Leave { site: index, turn }));
        if self.store.abilities.contains(&Ability::Replace) && env.dice.chance(400) {
            let (at, ttl) = (env.dice.between(Duration::ZERO, hold_for), longer(&mut env.dice, hold.lease().terms.ttl));
            env.plan(at, Plan::Act(self.id, Act::Replace { site: index, turn, ttl }));
        }
        for _ in 0..2 {
            let at = env.dice.between(Duration::ZERO, hold_for);
            env.plan(at, Plan::Act(self.id, Act::Check { site: index, turn }));
        }
    }

    /// Who holds here now, in its own view.
    pub(crate) fn holdings(&self, at: Time) -> impl Iterator<Item = Holding<'_>> {
        let (now, clock) = (self.clock.read(at), self.clock);
        let holds = self.sites.iter().filter_map(|site| Some((site.holder.as_ref()?.1.as_ref(), site.replacing)));
        let valid = holds.filter(move |(hold, _)| !hold.remaining(now).is_zero());
        valid.map(move |(hold, replacing)| Holding { hold, replacing, until: clock.when(hold.valid_until()) })
    }
}

fn longer(dice: &mut Dice, ttl: Ttl) -> Ttl {
    let times = dice.pick(&[1, 2, 10]).unwrap_or(1);
    Ttl::new(ttl.get() * times).unwrap_or(ttl)
}
