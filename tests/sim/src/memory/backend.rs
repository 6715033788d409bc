//! What asks the store for a process: some connections, and what is under way on them.

use std::collections::BTreeMap;

use lock_core::station::{Action, ActionId, Input, Reply, Request};
use lock_core::{
    Answer, BackendError, Batch, Certainty, Claim, Effect, ErrorKind, Event, Moment, Operation, Owner, ReleaseRequest,
    Renewed,
};

use super::Mistake;
use super::asked::{Ask, Say};
use super::store::{STORE, Words};
use crate::client::{Backend, Heard};
use crate::env::Env;
use crate::network::{ConnId, ProcessId, Tag};

/// Who waits for an answer.
#[derive(Clone, Debug)]
enum What {
    /// The station with this number.
    Action(usize, ActionId),
    Renewal(Batch),
    /// Nobody.
    Nothing,
}

#[derive(Debug)]
struct Pending {
    what: What,
    ask: Ask,
    conn: ConnId,
    deadline: Moment,
}

#[derive(Debug)]
pub(crate) struct Direct {
    process: ProcessId,
    /// The connections for actions, and last the keeper's. Messages come over all of them.
    conns: Vec<ConnId>,
    pending: BTreeMap<Tag, Pending>,
    last_tag: u64,
    mistake: Option<Mistake>,
}

impl Direct {
    pub(super) fn new(env: &mut Env<Words>, process: ProcessId, pool: usize, mistake: Option<Mistake>) -> Self {
        let conns = (0..=pool).map(|_| env.network.connect(process, STORE)).collect();
        Self { process, conns, pending: BTreeMap::new(), last_tag: 0, mistake }
    }

    fn submit(&mut self, env: &mut Env<Words>, deadline: Moment, what: What, ask: Ask) {
        let keeper = self.conns.len() - 1;
        let lane = match what {
            What::Action(..) | What::Nothing => env.dice.from(0, keeper - 1),
            What::Renewal(_) => keeper,
        };
        self.last_tag += 1;
        let (tag, conn) = (Tag(self.last_tag), self.conns[lane]);
        env.ask(conn, tag, ask.clone());
        self.pending.insert(tag, Pending { what, ask, conn, deadline });
    }

    fn end(&mut self, env: &mut Env<Words>, which: impl Fn(&Pending) -> bool, kind: ErrorKind) -> Vec<Heard> {
        let ending: Vec<_> = self.pending.iter().filter(|(_, pending)| which(pending)).map(|(tag, _)| *tag).collect();
        let ended: Vec<_> = ending.into_iter().filter_map(|tag| self.pending.remove(&tag)).collect();
        for pending in &ended {
            if let (Ask::Acquire(claim), Some(Mistake::ReleasedTooSoon)) = (&pending.ask, self.mistake) {
                self.release_too_soon(env, pending.deadline, claim);
            }
        }
        ended.into_iter().filter_map(|pending| failed(pending, kind)).collect()
    }

    fn release_too_soon(&mut self, env: &mut Env<Words>, deadline: Moment, claim: &Claim) {
        if claim.replaces.is_some() {
            let (name, terms, certainty) = (claim.name.clone(), claim.terms, Certainty::Unknown);
            let request = ReleaseRequest { name, owner: claim.owner, terms, certainty, keep: None };
            self.submit(env, deadline, What::Nothing, Ask::Release(request));
        }
    }

    /// The claim that goes out.
    fn claim(&self, env: &mut Env<Words>, claim: Claim) -> Claim {
        match self.mistake {
            Some(Mistake::AskedAsAnother) if claim.replaces.is_some() && env.dice.chance(500) => {
                Claim { owner: Owner::kept(claim.owner), ..claim }
            }
            Some(_) | None => claim,
        }
    }
}

impl Backend for Direct {
    type Talk = Words;

    fn run(&mut self, env: &mut Env<Words>, now: Moment, site: usize, action: Action) -> Vec<Heard> {
        let ask = match action.request {
            Request::Acquire(claim) => Ask::Acquire(self.claim(env, claim)),
            Request::Release(request) => Ask::Release(request),
        };
        self.submit(env, now + action.within, What::Action(site, action.id), ask);
        Vec::new()
    }

    fn renew(&mut self, env: &mut Env<Words>, now: Moment, batch: Batch) -> Vec<Heard> {
        let (deadline, ask) = (now + batch.within, Ask::Renew(batch.leases.clone()));
        self.submit(env, deadline, What::Renewal(batch), ask);
        Vec::new()
    }

    fn next_wake(&self) -> Option<Moment> {
        self.pending.values().map(|pending| pending.deadline).min()
    }

    fn wake(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        self.end(env, |pending| pending.deadline <= now, ErrorKind::Timeout)
    }

    fn said(&mut self, _: &mut Env<Words>, _: Moment, conn: ConnId, tag: Tag, say: Say) -> Vec<Heard> {
        let Some(pending) = self.pending.get(&tag).filter(|pending| pending.conn == conn) else { return Vec::new() };
        let heard = match (pending.what.clone(), say) {
            (What::Renewal(batch), Say::Renew(answers)) => Heard::Renewal(batch, Ok(answers)),
            (What::Action(site, id), Say::Acquire(result)) => Heard::Reply(site, id, Reply::Acquire(result)),
            (What::Action(site, id), Say::Release(result)) => Heard::Reply(site, id, Reply::Release(result)),
            (What::Renewal(_) | What::Action(..) | What::Nothing, _) => return Vec::new(),
        };
        self.pending.remove(&tag);
        vec![heard]
    }

    fn cut(&mut self, env: &mut Env<Words>, _: Moment, conn: ConnId) -> Vec<Heard> {
        if let Some(lane) = self.conns.iter_mut().find(|lane| **lane == conn) {
            *lane = env.network.connect(self.process, STORE);
        }
        let mut heard = self.end(env, |pending| pending.conn == conn, ErrorKind::Unreachable);
        heard.push(Heard::Reconnected);
        heard
    }

    fn inward(&mut self, _: Moment, _: usize, input: Input) -> Input {
        match self.mistake {
            Some(Mistake::DeafReaders) => as_if_nobody_waited(input),
            Some(_) | None => input,
        }
    }

    fn hears(&self, conn: ConnId) -> bool {
        self.conns.contains(&conn)
    }

    fn conns(&self) -> Vec<ConnId> {
        self.conns.clone()
    }
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
        Input::Event(Event::Granted { lease, valid_for, .. }) => {
            Input::Event(Event::Granted { lease, valid_for, wanted })
        }
        Input::Event(Event::Wanted { .. }) => Input::Tick,
        input @ (Input::Join(_)
        | Input::Adopt { .. }
        | Input::Detach(_)
        | Input::Leave(_)
        | Input::Cancel(_)
        | Input::Replace { .. }
        | Input::Reply(..)
        | Input::Renewal { .. }
        | Input::Event(_)
        | Input::Tick
        | Input::Close) => input,
    }
}

fn failed(pending: Pending, kind: ErrorKind) -> Option<Heard> {
    let error = |operation| BackendError::new("sim", operation, kind, Effect::Unknown, "no answer");
    match (pending.what, pending.ask) {
        (What::Renewal(batch), _) => Some(Heard::Renewal(batch, Err(error(Operation::Renew)))),
        (What::Action(site, id), Ask::Acquire(_)) => {
            Some(Heard::Reply(site, id, Reply::Acquire(Err(error(Operation::Acquire)))))
        }
        (What::Action(site, id), _) => Some(Heard::Reply(site, id, Reply::Release(Err(error(Operation::Release))))),
        (What::Nothing, _) => None,
    }
}
