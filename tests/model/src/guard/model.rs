//! The guard as a model to explore.

use stateright::{Model, Property};

use super::Guarded;
use super::action::Action;
use super::claim::Claim;
use super::state::State;

impl<const N: usize> Model for Guarded<N> {
    type State = State<N>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![State::new(&self.setup, self.bounds)]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Action>) {
        actions.extend(Action::all(self.form, &self.setup, state));
    }

    fn next_state(&self, state: &Self::State, action: Action) -> Option<Self::State> {
        let mut next = *state;
        next.apply(self.form, &self.setup, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let concerned = Claim::ALL.into_iter().filter(|claim| claim.concerns(self.bounds));
        concerned.map(Claim::property).collect()
    }
}
