//! Visits every state of the model once, the nearest first, so that a counterexample is a shortest one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use lock_rules::entries::WHOLE;

use super::model::{Event, Fault, Setup, State};

/// A schedule that ends with a fault.
#[derive(Debug)]
pub(super) struct Counterexample {
    pub(super) limit: u32,
    pub(super) schedule: Vec<Event>,
    pub(super) fault: Fault,
}

/// Every state, and how it was reached first.
#[derive(Default)]
struct Visited {
    states: Vec<(State, Option<(usize, Event)>)>,
    numbers: HashMap<State, usize>,
}

impl Visited {
    fn visit(&mut self, state: State, from: Option<(usize, Event)>) {
        if let Entry::Vacant(vacant) = self.numbers.entry(state.clone()) {
            vacant.insert(self.states.len());
            self.states.push((state, from));
        }
    }

    fn counterexample(&self, (mut at, last): (usize, Event), fault: Fault) -> Counterexample {
        let mut schedule = vec![last];
        while let (_, Some((from, event))) = self.states[at] {
            schedule.push(event);
            at = from;
        }
        schedule.reverse();
        Counterexample { limit: self.states[at].0.capacity, schedule, fault }
    }
}

/// The number of states, if nothing is wrong with any of them.
pub(super) fn explore(setup: &Setup) -> Result<usize, Counterexample> {
    let mut visited = Visited::default();
    for capacity in setup.capacities {
        visited.visit(State { capacity: *capacity, clients: Vec::new() }, None);
    }
    let mut at = 0;
    while let Some((state, _)) = visited.states.get(at).cloned() {
        for event in state.events(setup) {
            match state.after(setup, event) {
                Ok(next) => visited.visit(next, Some((at, event))),
                Err(fault) => return Err(visited.counterexample((at, event), fault)),
            }
        }
        at += 1;
    }
    Ok(at)
}

/// Plays one schedule.
pub(super) fn play(setup: &Setup, limit: u32, schedule: &[Event]) -> Result<State, Fault> {
    let start = State { capacity: limit, clients: Vec::new() };
    schedule.iter().try_fold(start, |state, event| state.after(setup, *event))
}

impl Counterexample {
    /// The schedule with a letter for each entry, in the order of their arrival.
    pub(super) fn as_text(&self) -> String {
        let (mut letters, mut unused) = (Vec::new(), 'A'..);
        let mut steps = vec![format!("limit {}", number(self.limit))];
        for event in &self.schedule {
            steps.push(step(*event, &mut letters, &mut unused));
        }
        let fault = match self.fault {
            Fault::Sleeps { entry } => format!("{} fits and sleeps", letters[entry]),
            Fault::Loses { entry } => format!("{} loses its hold", letters[entry]),
            Fault::Overtakes { entry } => format!("{} is overtaken", letters[entry]),
            Fault::Exceeds => "too many hold".to_owned(),
        };
        format!("{}: {fault}", steps.join(", "))
    }
}

fn step(event: Event, letters: &mut Vec<char>, unused: &mut impl Iterator<Item = char>) -> String {
    let mut new = |letters: &mut Vec<char>| {
        letters.extend(unused.next());
        letters[letters.len() - 1]
    };
    match event {
        Event::Arrives(weight) => format!("{} arrives for {}", new(letters), number(weight)),
        Event::Barges(weight) => format!("{} barges for {}", new(letters), number(weight)),
        Event::Replaced(entry, weight) => {
            let old = letters.remove(entry);
            format!("{} for {} replaces {old}", new(letters), number(weight))
        }
        Event::Ends(entry) => format!("{} ends", letters.remove(entry)),
        Event::Limit(limit) => format!("limit {}", number(limit)),
        Event::Decides(entry) => format!("{} decides", letters[entry]),
        Event::Writes(entry) => format!("{} is granted", letters[entry]),
    }
}

fn number(weight: u32) -> String {
    if weight == WHOLE { "all".to_owned() } else { weight.to_string() }
}
