//! What a process does with the outputs of its stations, and with what calls about latches need.

use lock_core::station::{Action, Output, Request};
use lock_core::{AcquireError, Claim, Moment, Refusal};

use super::latching::Next;
use super::{Backend, Calling, Process, Site, User};
use crate::env::Env;
use crate::fault::Fault;
use crate::invariants::{self, Rule};

impl<B: Backend> Process<B> {
    pub(super) fn carry_out(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, output: Output) {
        let site = &mut self.sites[index];
        match output {
            Output::Admit { turn, hold } => self.admit(env, now, index, turn, &hold),
            Output::Refuse { turn, refusal } => {
                if let Refusal::Error(AcquireError::TicketOver { .. }) = &refusal {
                    env.fired(Fault::TicketOver);
                }
                if let Some(user) = site.users.remove(&turn) {
                    env.watch.refused(user.wish.wait, &refusal);
                    self.leave_first(env, Some(user.wish.part));
                }
            }
            Output::Lose { turn, .. } => {
                env.fired(Fault::Lost);
                let part = site.users.remove(&turn).map(|user| user.wish.part);
                self.leave_first(env, part);
            }
            Output::Replaced { turn, result: Ok(hold) } => self.go_on(env, now, index, turn, &hold),
            Output::Replaced { turn, result: Err(_) } => {
                site.users.get_mut(&turn).into_iter().for_each(|user| user.goal = None);
            }
            Output::Detached(turn) => self.detached(env, now, index, turn),
            Output::Ended { .. } => {}
            Output::Run(action) => self.run(env, now, index, action),
            Output::StartRenewal { lease, admission } => self.keeper.start(lease, admission),
            Output::RenewNow(owner) => self.keeper.renew_now(now, owner),
            Output::StopRenewal(owner) => self.keeper.stop(owner),
            Output::EndSession => {
                let heard = self.backend.end_session(env, now);
                self.all_heard(now, heard);
            }
        }
    }

    fn run(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, action: Action) {
        let Site { ledger, users, .. } = &mut self.sites[index];
        ledger.ran(now, &action);
        if let Request::Acquire(Claim { replaces: Some(old), owner, .. }) = &action.request {
            let holds = |user: &&User| user.hold.as_ref().is_some_and(|hold| hold.lease().owner == *old);
            ledger.replaces(*owner, *old, users.values().any(|user| holds(&user)));
            users.values_mut().filter(|user| holds(&&**user)).for_each(|user| user.replacing = Some(*owner));
        }
        env.watch.report(Rule::BoundedDebt, invariants::bounded_debt(ledger, now, &action));
        let heard = self.backend.run(env, now, index, action);
        self.all_heard(now, heard);
    }

    /// Has the users of latches go on, as far as they can.
    pub(super) fn go_on_with_calls(&mut self, env: &mut Env<B::Talk>, now: Moment) {
        let numbers: Vec<u64> = self.calls.keys().copied().collect();
        for number in numbers {
            while let Some((next, call)) = self.calls.get_mut(&number).and_then(|call| Some((call.next(now)?, call))) {
                match next {
                    Next::Ask(request) => {
                        let within = self.policy.within(call.ttl());
                        let heard = self.backend.latch(env, now, Calling { call: number, request, within });
                        self.all_heard(now, heard);
                    }
                    Next::End(end) => {
                        env.watch.waited(call.name(), call.waits_for, end);
                        self.calls.remove(&number);
                    }
                }
            }
        }
    }
}
