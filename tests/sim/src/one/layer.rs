//! The layer between a station and its backend, which breaks rules of the station if a mistake says so.

use std::collections::BTreeMap;

use lock_core::station::{Action, ActionId, Input, Reply, Request};
use lock_core::{Answer, Moment, Owner, Released, Renewed, StoreEvent};

use super::mistake::Mistake;

#[derive(Debug)]
pub(crate) struct Layer {
    mistake: Option<Mistake>,
    asked: BTreeMap<ActionId, (Owner, Moment)>,
    /// Since when a transfer to an owner counts, as its station sees it.
    basis: BTreeMap<Owner, Moment>,
    /// The grant that the station just got.
    granted: Option<Owner>,
    /// What those who wait were last told.
    told: BTreeMap<Owner, Answer>,
}

impl Layer {
    pub(crate) fn new(mistake: Option<Mistake>) -> Self {
        Self { mistake, asked: BTreeMap::new(), basis: BTreeMap::new(), granted: None, told: BTreeMap::new() }
    }

    /// What the station gets instead of `input`.
    pub(crate) fn inward(&mut self, now: Moment, input: Input) -> Input {
        self.granted = granted_by(&input);
        match (self.mistake, input) {
            (Some(Mistake::CountedFromPush), Input::Event(StoreEvent::Granted { lease, valid_for, wanted })) => {
                let late = self.basis.get(&lease.owner).map_or_else(Default::default, |basis| now.since(*basis));
                Input::Event(StoreEvent::Granted { lease, valid_for: valid_for + late, wanted })
            }
            (Some(Mistake::CountedFromPush), Input::Reply(id, reply)) => {
                self.answered(id, &reply);
                Input::Reply(id, reply)
            }
            (Some(Mistake::WakingTrusted), input) => {
                self.remember(&input);
                input
            }
            (Some(Mistake::DeafReaders), input) => as_if_nobody_waited(input),
            (_, input) => input,
        }
    }

    fn answered(&mut self, id: ActionId, reply: &Reply) {
        if let (Some((owner, at)), Reply::Acquire(Ok(_))) = (self.asked.remove(&id), reply) {
            self.basis.insert(owner, at);
        }
    }

    fn remember(&mut self, input: &Input) {
        if let Input::Reply(id, Reply::Acquire(Ok(answer @ Answer::Queued { .. }))) = input {
            self.told.extend(self.asked.remove(id).map(|(owner, _)| (owner, answer.clone())));
        } else if let Input::Event(StoreEvent::Freed { .. }) = input {
            self.told.clear();
        }
    }

    /// What is answered at once, instead of running the action.
    pub(crate) fn outward(&mut self, now: Moment, action: &Action) -> Option<Reply> {
        match &action.request {
            Request::Acquire(claim) if self.mistake == Some(Mistake::CountedFromPush) => {
                self.asked.insert(action.id, (claim.owner, now));
                self.basis.entry(claim.owner).or_insert(now);
                None
            }
            Request::Acquire(claim) if self.mistake == Some(Mistake::WakingTrusted) => {
                self.asked.insert(action.id, (claim.owner, now));
                self.told.get(&claim.owner).map(|answer| Reply::Acquire(Ok(answer.clone())))
            }
            Request::Release(request) if self.granted == Some(request.owner) => {
                (self.mistake == Some(Mistake::UnwantedKept)).then_some(Reply::Release(Ok(Released::Released)))
            }
            Request::Acquire(_) | Request::Release(_) => None,
        }
    }
}

fn granted_by(input: &Input) -> Option<Owner> {
    if let Input::Event(StoreEvent::Granted { lease, .. })
    | Input::Reply(_, Reply::Acquire(Ok(Answer::Granted { lease, .. }))) = input
    {
        return Some(lease.owner);
    }
    None
}

fn as_if_nobody_waited(input: Input) -> Input {
    let wanted = false;
    match input {
        Input::Renewal { owner, asked_at, answer: Ok(Renewed::Renewed { valid_for, .. }) } => {
            Input::Renewal { owner, asked_at, answer: Ok(Renewed::Renewed { valid_for, wanted }) }
        }
        Input::Reply(id, Reply::Acquire(Ok(Answer::Granted { lease, valid_for, .. }))) => {
            Input::Reply(id, Reply::Acquire(Ok(Answer::Granted { lease, valid_for, wanted })))
        }
        Input::Event(StoreEvent::Granted { lease, valid_for, .. }) => {
            Input::Event(StoreEvent::Granted { lease, valid_for, wanted })
        }
        Input::Event(StoreEvent::Wanted { .. }) => Input::Tick,
        input @ (Input::Join(_)
        | Input::Leave(_)
        | Input::Cancel(_)
        | Input::Replace { .. }
        | Input::Adopt { .. }
        | Input::Detach(_)
        | Input::Reply(..)
        | Input::Renewal { .. }
        | Input::Event(_)
        | Input::Tick
        | Input::Close
        | Input::Break) => input,
    }
}
