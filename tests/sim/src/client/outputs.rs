//! What a process does with the outputs of its stations.

use lock_core::station::{Action, Output, Request};
use lock_core::{Claim, Moment};

use super::{Backend, Process, Site, User};
use crate::env::Env;
use crate::fault::Fault;
use crate::invariants::{self, Rule};

impl<B: Backend> Process<B> {
    pub(super) fn carry_out(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, output: Output) {
        let site = &mut self.sites[index];
        match output {
            Output::Admit { turn, hold } => self.admit(env, now, index, turn, &hold),
            Output::Refuse { turn, refusal } => {
                if let Some(user) = site.users.remove(&turn) {
                    env.watch.refused(user.wish.wait, &refusal);
                }
            }
            Output::Lose { turn, .. } => {
                env.fired(Fault::Lost);
                site.users.remove(&turn);
            }
            Output::Replaced { turn, result: Ok(hold) } => self.go_on(env, now, index, turn, &hold),
            Output::Replaced { turn, result: Err(_) } => {
                site.users.get_mut(&turn).into_iter().for_each(|user| user.goal = None);
            }
            Output::Ended { .. } | Output::Detached(_) => {}
            Output::Run(action) => self.run(env, now, index, action),
            Output::Keep { lease, asked_at, valid_for } => self.keeper.keep(lease, asked_at, valid_for),
            Output::Renew(owner) => self.keeper.hasten(now, owner),
            Output::Forget(owner) => self.keeper.forget(owner),
        }
    }

    fn run(&mut self, env: &mut Env<B::Talk>, now: Moment, index: usize, action: Action) {
        let Site { ledger, users, .. } = &mut self.sites[index];
        ledger.ran(now, &action);
        if let Request::Acquire(Claim { replaces: Some(old), owner, .. }) = &action.request {
            let holds = |user: &&mut User| user.hold.as_ref().is_some_and(|hold| hold.lease().owner == *old);
            users.values_mut().filter(holds).for_each(|user| user.replacing = Some(*owner));
        }
        env.watch.report(Rule::BoundedDebt, invariants::bounded_debt(ledger, now, &action));
        let heard = self.backend.run(env, now, index, action);
        self.all_heard(now, heard);
    }
}
