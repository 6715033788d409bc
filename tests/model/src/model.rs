//! The protocol as a model to explore.

use stateright::{Model, Property};

use crate::Quorum;
use crate::action::Action;
use crate::claim::Claim;
use crate::state::State;

impl<const N: usize, const C: usize> Model for Quorum<N, C> {
    type State = State<N, C>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![State::new(self.bounds)]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Action>) {
        actions.extend(Action::all(self.rules, state));
    }

    fn next_state(&self, state: &Self::State, action: Action) -> Option<Self::State> {
        let mut next = *state;
        next.apply(self.rules, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let concerned = Claim::ALL.into_iter().filter(|claim| claim.concerns(self.rules.rounds));
        concerned.map(Claim::property).collect()
    }
}
