//! The checker takes states that differ in names alone for one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use quorum_model::{Bounds, Quorum, State};
use stateright::Model;

use crate::{CALM, TWO_ROUNDS};

fn hash(state: &State<3, 2>) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// What is true of a state, and what may come of it.
fn outlook(model: &Quorum<3, 2>, state: &State<3, 2>) -> (Vec<bool>, BTreeSet<u64>) {
    let claims = model.properties().into_iter().map(|claim| (claim.condition)(model, state));
    (claims.collect(), model.next_states(state).iter().map(hash).collect())
}

#[test]
fn states_that_are_taken_for_one_have_one_outlook() {
    let model = Quorum::<3, 2> { rules: TWO_ROUNDS, bounds: Bounds { crashes: 1, ..CALM } };
    let mut pending = model.init_states();
    let mut seen: HashSet<_> = pending.iter().copied().collect();
    let mut outlooks = HashMap::new();
    while let Some(state) = pending.pop() {
        let outlook = outlook(&model, &state);
        let of_others = outlooks.entry(hash(&state)).or_insert_with(|| outlook.clone());
        assert_eq!(*of_others, outlook, "{state:?}");
        pending.extend(model.next_states(&state).into_iter().filter(|next| seen.insert(*next)));
    }
    println!("{} states are taken for {}", seen.len(), outlooks.len());
    assert!(outlooks.len() * 10 < seen.len());
}
