//! What users do in their process, and the answers that they get.

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::{Input, Join, Leaving, TurnId};
use lock_core::{
    Ability, Fairness, Hold, Keep, Mode, ModeKind, Moment, NameKind, Note, Patience, Terms, Ticket, Ttl, drift,
};

use super::latching::Call;
use super::user::User;
use super::{Backend, Process, Usage};
use crate::clock::Time;
use crate::dice::Dice;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::Holding;
use crate::wish::{Act, Part, Wait, Wish};

/// How long a lock is kept at most, in milliseconds.
const KEEP_MAX: u64 = 8000;
/// The longest ttl that a holder asks for instead of its own. In the end, everybody waits for a lease that nobody adopts.
const LONGER_MAX: Duration = Duration::from_secs(120);
/// How long a write takes from its check to the resource.
const WRITE_WITHIN: Duration = Duration::from_millis(3);
/// How long a few writes take where fewer users write, because others read.
const LATE_WRITE_WITHIN: Duration = Duration::from_secs(10);

impl<B: Backend> Process<B> {
    pub(super) fn act(&mut self, env: &mut Env<B::Talk>, now: Moment, act: Act) {
        match act {
            Act::Join(wish) => self.join(env, now, wish),
            Act::Adopt(wish, ticket) => self.adopt(env, now, wish, ticket),
            Act::Detach { site, turn } => self.detach(now, site, turn),
            Act::Leave { site, turn } => self.leave(env, site, turn),
            Act::Latch { name, wanted, ttl } => {
                let number = env.number();
                self.calls.extend(Call::new(&mut env.dice, now, name, &wanted, ttl).map(|call| (number, call)));
            }
            Act::Replace { site, turn, terms } => self.replace(site, turn, terms),
            Act::GiveUp { site } => {
                let site = self.site_of_kind(site, self.sites[site].usage.kind());
                let waits = |(_, user): &(&TurnId, &User)| user.hold.is_none();
                while let Some(turn) = self.sites[site].users.iter().find(waits).map(|(turn, _)| *turn) {
                    self.leave(env, site, turn);
                    // That one leaves may mean that the next has its turn.
                    self.drain(env);
                }
            }
            Act::Check { site, turn } => {
                let can_share = self.can_share();
                let Some(user) = self.sites[site].users.get(&turn) else { return };
                let Some(hold) = user.hold.as_ref().filter(|hold| hold.check(now).is_ok()) else { return };
                if user.reads(hold) {
                    env.watch.read(hold);
                } else {
                    let write = Act::Write { site, turn, hold: Arc::clone(hold) };
                    let most = if can_share && env.dice.chance(50) { LATE_WRITE_WITHIN } else { WRITE_WITHIN };
                    let later = env.dice.between(Duration::ZERO, most);
                    env.plan(later, Plan::Act(self.id, write));
                }
            }
            Act::Write { site, turn, hold } => {
                // The previous holder has already written, and so has a turn under the lease that was replaced.
                let user = self.sites[site].users.get(&turn).and_then(|user| user.hold.as_ref());
                if user.is_some_and(|known| Arc::ptr_eq(known, &hold)) || hold.lost().is_some() {
                    let slots =
                        self.sites[site].users.get(&turn).map_or(hold.lease().slots.get(), |user| user.slots(&hold));
                    env.watch.written(&hold, slots, hold.remaining(now), &mut env.tally);
                }
            }
        }
    }

    fn leave(&mut self, env: &mut Env<B::Talk>, site: usize, turn: TurnId) {
        let user = self.sites[site].users.remove(&turn);
        if user.as_ref().is_some_and(|user| user.hold.is_none()) {
            env.fired(Fault::Cancelled);
        }
        let part = user.as_ref().map(|user| user.wish.part);
        let held =
            user.and_then(|user| Some((user.replacing, user.hold.clone().filter(|hold| user.writes_alone(hold))?)));
        let wish = self.store.abilities.contains(&Ability::Keep) && env.dice.chance(300);
        let keep = wish.then(|| env.dice.millis(1, KEEP_MAX)).and_then(|time| self.store.keep(time).ok());
        if let (Some((replacing, hold)), Some(time)) = (held, keep.map(Keep::get)) {
            env.fired(Fault::Kept);
            let end = env.now + time.saturating_sub(drift(time));
            env.watch.keeping([Some(hold.lease().owner), replacing].into_iter().flatten(), end);
        }
        self.soon.push_back((site, Input::Leave(Leaving { turn, keep })));
        self.leave_first(env, part);
    }

    /// Who leaves the second lock of a set, or does not get it, leaves the first as well.
    pub(super) fn leave_first(&mut self, env: &mut Env<B::Talk>, part: Option<Part>) {
        if let Some(Part::Last { first: (site, turn) }) = part {
            self.leave(env, site, turn);
        }
    }

    /// A holder wants a ttl that is as long, or longer, or another mode.
    fn replace(&mut self, site: usize, turn: TurnId, terms: Terms) {
        if let Some(user) = self.sites[site].users.get_mut(&turn).filter(|user| user.goal.is_none()) {
            user.goal = Some(terms.mode);
            self.soon.push_back((site, Input::Replace { turn, terms }));
        }
    }

    /// A holder lets go of its lease, unless it wants another one instead.
    fn detach(&mut self, now: Moment, site: usize, turn: TurnId) {
        let holds = |user: &&User| user.hold.as_ref().is_some_and(|hold| hold.check(now).is_ok());
        if self.sites[site]
            .users
            .get(&turn)
            .filter(holds)
            .is_some_and(|user| user.goal.is_none() && user.wish.part == Part::Alone)
        {
            self.soon.push_back((site, Input::Detach(turn)));
        }
    }

    /// A holder has let go of its lease. One or two others get the ticket, or nobody.
    pub(super) fn detached(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, turn: TurnId) {
        let Some(User { wish, hold: Some(hold), .. }) = self.sites[index].users.remove(&turn) else { return };
        env.fired(Fault::Detached);
        env.watch.excuse(hold.lease().owner);
        env.note(format_args!("{:?} detaches the lease of {turn:?}: {hold:?}", self.id));
        let ticket = Ticket::new(hold.lease(), hold.valid_until().since(now));
        for _ in 0..env.dice.pick(&[0, 1, 1, 2]).unwrap_or(1) {
            let later = env.dice.between(Duration::ZERO, ticket.valid_for() * 2);
            let soon = env.dice.millis(0, 50);
            let at = if env.dice.chance(700) { soon } else { later };
            env.plan(at, Plan::Act(self.id, Act::Adopt(wish.clone(), ticket.clone())));
        }
    }

    /// A turn goes on under another lease.
    pub(super) fn go_on(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, turn: TurnId, hold: &Arc<Hold>) {
        env.fired(Fault::Replaced);
        let site = &mut self.sites[index];
        let user = site.users.get_mut(&turn);
        let known = user.and_then(|user| Some((user.hold.clone()?, user)));
        let Some((known, user)) = known.filter(|(known, _)| known.check(now).is_ok()) else {
            env.watch.admitted_a_stranger(&site.name, turn);
            return;
        };
        match (known.lease().terms.mode, hold.lease().terms.mode) {
            (Mode::Exclusive, Mode::Shared) => env.fired(Fault::Downgraded),
            (Mode::Shared, Mode::Exclusive) => env.fired(Fault::Upgraded),
            (Mode::Permits { .. }, Mode::Permits { .. }) => env.fired(Fault::GaveBack),
            _ => {}
        }
        env.watch.admitted(hold);
        env.note(format_args!("{:?} replaces the lease of {turn:?} by {hold:?}", self.id));
        user.hold = Some(Arc::clone(hold));
        (user.goal, user.replacing) = (None, None);
    }

    fn join(&mut self, env: &mut Env<B::Talk>, now: Moment, wish: Wish) {
        let mode = if wish.part == Part::Alone { self.mode(env, wish.site) } else { Mode::Exclusive };
        let site = self.site_of_kind(wish.site, mode.name_kind());
        let wish = Wish { site, ..wish };
        let join = self.waiter(env, now, wish, mode);
        self.soon.push_back((site, Input::Join(join)));
    }

    fn adopt(&mut self, env: &mut Env<B::Talk>, now: Moment, wish: Wish, ticket: Ticket) {
        let site = self.site_of_kind(wish.site, ticket.mode().name_kind());
        let wish = Wish { site, ..wish };
        let join = self.waiter(env, now, wish, ticket.mode());
        self.sites[site].users.entry(join.turn).and_modify(|user| user.adopts = true);
        self.soon.push_back((site, Input::Adopt { join, ticket }));
    }

    /// The site of the same name that is used as this kind.
    fn site_of_kind(&self, site: usize, kind: NameKind) -> usize {
        let name = &self.sites[site].name;
        self.sites.iter().position(|other| other.name == *name && other.kind == kind).unwrap_or(site)
    }

    /// A new user, who waits.
    fn waiter(&mut self, env: &mut Env<B::Talk>, now: Moment, wish: Wish, mode: Mode) -> Join {
        let number = env.number();
        let (turn, site, ttl, max_hold) = (TurnId(number), wish.site, wish.ttl, wish.max_hold);
        let barges = self.store.abilities.contains(&Ability::Barge);
        let fairness = if barges { self.sites[site].usage.fairness(&mut env.dice) } else { Fairness::Fair };
        let patience = match wish.wait {
            Wait::Not => Patience::Never,
            Wait::For(time) => Patience::within(now, time),
            Wait::Forever => Patience::Forever,
        };
        if let Some(cancel) = wish.cancel {
            env.plan(cancel, Plan::Act(self.id, Act::Leave { site, turn }));
        }
        self.sites[site].users.insert(turn, User::new(wish, fairness, env.now));
        let terms = Terms { mode, ttl };
        Join { terms, patience, fairness, max_hold, ..Join::new(turn, Note::from_wire("1@sim")) }
    }

    /// What a user asks for; where the store can tell names apart, a few take the name for something else.
    fn mode(&self, env: &mut Env<B::Talk>, site: usize) -> Mode {
        let usage = self.sites[site].usage;
        if usage != Usage::Mutex && self.store.modes.contains(&ModeKind::Permits) && env.dice.chance(4) {
            env.watch.used_otherwise();
            return usage.other(&mut env.dice);
        }
        usage.mode(&mut env.dice)
    }

    /// A user gets its turn, and no answer to a claim has just come: if it reads under a lease that others hold already, it
    /// passes nobody at the store, unless it is barging.
    pub(super) fn may_join(&self, env: &mut Env<B::Talk>, index: usize, turn: TurnId, hold: &Hold) {
        let users = &self.sites[index].users;
        let same = |user: &User| user.hold.as_ref().is_some_and(|held| held.lease().owner == hold.lease().owner);
        let joins = users.values().any(|user| same(user) && user.begun < Some(env.now));
        if let Some(user) = users.get(&turn).filter(|user| joins && user.fairness == Fairness::Fair) {
            env.watch.joined(&hold.lease().name, user.since);
        }
    }

    /// A user gets its turn.
    pub(super) fn admit(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, turn: TurnId, hold: &Arc<Hold>) {
        let site = &mut self.sites[index];
        let beside = site.users.values().filter_map(|user| user.hold.as_ref()).any(|hold| hold.check(now).is_ok());
        let Some(user) = site.users.get_mut(&turn) else {
            env.watch.admitted_a_stranger(&site.name, turn);
            return;
        };
        if beside {
            env.fired(if hold.lease().terms.mode == Mode::Shared { Fault::ReadTogether } else { Fault::HeldTogether });
        }
        if user.adopts {
            env.fired(Fault::Adopted);
        }
        env.watch.begun(env.now, hold.lease());
        // The facade checks the hold once more.
        if hold.check(now).is_ok() {
            env.watch.admitted(hold);
        }
        env.note(format_args!("{:?} admits {turn:?} of {} with {:?}", self.id, site.name, hold));
        user.hold = Some(Arc::clone(hold));
        user.begun = Some(env.now);
        let hold_for = user.wish.hold_for;
        match user.wish.part {
            Part::First { then } => {
                let part = Part::Last { first: (index, turn) };
                env.plan(Duration::ZERO, Plan::Act(self.id, Act::Join(Wish { site: then, part, ..user.wish.clone() })));
            }
            part @ (Part::Alone | Part::Last { .. }) => {
                if part != Part::Alone {
                    env.fired(Fault::SetHeld);
                }
                env.plan(hold_for, Plan::Act(self.id, Act::Leave { site: index, turn }));
            }
        }
        if self.store.abilities.contains(&Ability::Replace) && env.dice.chance(400) {
            let at = env.dice.between(Duration::ZERO, hold_for);
            let Terms { mode, ttl } = hold.lease().terms;
            let terms = Terms { mode: site.usage.instead(&mut env.dice, mode), ttl: longer(&mut env.dice, ttl) };
            env.plan(at, Plan::Act(self.id, Act::Replace { site: index, turn, terms }));
        }
        if self.store.abilities.contains(&Ability::Replace) && env.dice.chance(200) {
            let at = env.dice.between(Duration::ZERO, hold_for);
            env.plan(at, Plan::Act(self.id, Act::Detach { site: index, turn }));
        }
        for _ in 0..2 {
            let at = env.dice.between(Duration::ZERO, hold_for);
            env.plan(at, Plan::Act(self.id, Act::Check { site: index, turn }));
        }
    }

    /// Who holds here now, in its own view.
    pub(crate) fn holdings(&self, at: Time) -> impl Iterator<Item = Holding<'_>> {
        let (now, clock) = (self.clock.read(at), self.clock);
        let users = self.sites.iter().flat_map(|site| site.users.values());
        let holds = users.filter_map(|user| Some((user, user.hold.as_deref()?)));
        let valid = holds.filter(move |(_, hold)| !hold.remaining(now).is_zero());
        valid.map(move |(user, hold)| {
            let (reads, until) = (user.reads(hold), clock.when(hold.valid_until()));
            Holding { hold, replacing: user.replacing, reads, slots: user.slots(hold), until }
        })
    }

    fn can_share(&self) -> bool {
        self.store.modes.contains(&ModeKind::Shared)
    }
}

fn longer(dice: &mut Dice, ttl: Ttl) -> Ttl {
    let times = dice.pick(&[1, 2, 10]).unwrap_or(1);
    Ttl::new(ttl.get() * times).ok().filter(|longer| longer.get() <= LONGER_MAX).unwrap_or(ttl)
}
