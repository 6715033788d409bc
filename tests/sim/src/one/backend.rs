//! The backend for one server, like the real one: its connections, what is in flight on them, and what happens to that
//! when one is cut.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::station::{Action, ActionId, Input, Request};
use lock_core::{
    Batch, Certainty, Claim, Effect, ErrorKind, Evidence, Moment, Owner, Queueing, ReleaseRequest, RequestOrder,
};

use super::lane::{Lane, Line};
use super::layer::Layer;
use super::leasing::Leasing;
use super::mistake::Mistake;
use super::replies::{What, failed, reply};
use super::session::Session;
use super::step::Step;
use super::units::{Inbox, Seat};
use super::words::{Ask, SERVER, Say, Words};
use crate::client::{Backend, Calling, Heard};
use crate::env::Env;
use crate::fault::Fault;
use crate::network::{ConnId, ProcessId, StoreId, Tag};

/// How many connections carry requests that may overtake each other.
const POOL: usize = 3;

/// When something is asked, and how long that may take.
type Time = (Moment, Duration);

#[derive(Debug)]
pub(crate) struct Translator {
    pub(super) process: ProcessId,
    pub(super) inbox: Option<Inbox>,
    pub(super) server: StoreId,
    /// The connections for actions, and last the keeper's. Messages arrive over the first.
    pub(super) lanes: Vec<Lane>,
    pub(super) pending: BTreeMap<Tag, Pending>,
    /// The action that was answered last, for an answer that arrives twice.
    last_answered: Option<(Tag, usize, ActionId)>,
    last_tag: u64,
    /// By station.
    layers: BTreeMap<usize, Layer>,
    pub(super) mistake: Option<Mistake>,
    /// Where entries end with one.
    pub(super) session: Option<Session>,
    /// Where each ends with a lease of its own.
    pub(super) leasing: Option<Leasing>,
}

#[derive(Debug)]
pub(super) struct Pending {
    what: What,
    pub(super) ask: Ask,
    /// The request that is in flight, if what is asked for takes several.
    pub(super) step: Option<Step>,
    pub(super) asked_at: Moment,
    pub(super) deadline: Moment,
    pub(super) sent_on: Option<ConnId>,
}

impl Translator {
    pub(crate) fn new(
        process: ProcessId,
        inbox: Option<Inbox>,
        ordering: RequestOrder,
        mistake: Option<Mistake>,
    ) -> Self {
        let lanes = match ordering {
            RequestOrder::InOrder => 2,
            RequestOrder::Unordered => POOL + 1,
        };
        let (pending, layers, lanes) = (BTreeMap::new(), BTreeMap::new(), (0..lanes).map(|_| Lane::new()).collect());
        let (last_answered, last_tag, session, leasing) = (None, 0, None, None);
        let server = SERVER;
        Self { process, inbox, server, lanes, pending, last_answered, last_tag, layers, mistake, session, leasing }
    }

    /// What lies between a site and its requests.
    fn layer(&mut self, site: usize) -> &mut Layer {
        self.layers.entry(site).or_insert_with(|| Layer::new(self.mistake))
    }

    /// Asks, now or once there is a connection; or fails at once if there is none.
    pub(super) fn submit(&mut self, env: &mut Env<Words>, time: Time, what: What, ask: Ask) -> Option<Heard> {
        let (asked_at, deadline) = (time.0, time.0 + time.1);
        self.begin(env, asked_at, Pending { what, ask, step: None, asked_at, deadline, sent_on: None })
    }

    /// Sends a request, now or once there is a connection; or fails at once if there is none.
    pub(super) fn send(&mut self, env: &mut Env<Words>, mut pending: Pending) -> Option<Heard> {
        let lane = match pending.what {
            What::Action(..) | What::Latch(_) | What::Nothing => env.dice.from(0, self.lanes.len().saturating_sub(2)),
            What::Renewal(_) => self.lanes.len() - 1,
        };
        let tag = self.next_tag();
        pending.sent_on = if let Line::Up(conn) = self.lanes[lane].line { Some(conn) } else { None };
        match pending.sent_on {
            Some(conn) => env.ask(conn, tag, pending.in_flight().clone()),
            None if env.dice.chance(300) => {
                env.fired(Fault::NotSent);
                return failed(pending.what, &pending.ask, ErrorKind::Unreachable, Effect::None);
            }
            None => self.lanes[lane].held_back.push_back(tag),
        }
        self.pending.insert(tag, pending);
        None
    }

    fn request(&self, env: &mut Env<Words>, request: Request) -> Ask {
        match request {
            Request::Acquire(claim) => {
                let claim = self.claim(env, claim);
                let seat = match (claim.queueing, self.inbox) {
                    (Queueing::Unwanted, _) => Seat::Unwanted,
                    (Queueing::Wanted, None) => Seat::Silent,
                    (Queueing::Wanted, Some(inbox)) => Seat::Told(inbox),
                };
                Ask::Acquire(claim, seat)
            }
            Request::Release(request) => Ask::Release(request),
        }
    }

    /// An answer came.
    fn answered(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId, tag: Tag, say: Say) -> Option<Heard> {
        if let Some(lane) = self.greeted(conn, tag) {
            if say == Say::NotPrimary {
                self.hang_up(env, now, lane);
                return None;
            }
            return self.connected(env, conn, lane);
        }
        if let Some((_, site, id)) = self.last_answered.filter(|(last, ..)| *last == tag) {
            return Some(Heard::Reply(site, id, reply(say)?));
        }
        // A caller on a connection that is gone already has its error.
        if self.pending.get(&tag)?.sent_on != Some(conn) {
            return None;
        }
        if self.leasing.is_some() {
            return self.stepped(env, now, (tag, say));
        }
        let say = self.relied_on(now, tag, say)?;
        let pending = self.pending.remove(&tag)?;
        self.finish(Some(tag), pending, say)
    }

    /// What was asked for is answered.
    pub(super) fn finish(&mut self, tag: Option<Tag>, pending: Pending, say: Say) -> Option<Heard> {
        let Pending { what, ask, .. } = pending;
        match (what, say) {
            (what, Say::TooFew) => failed(what, &ask, ErrorKind::Unavailable, Effect::Unknown),
            (What::Renewal(batch), Say::Renew(answers)) => Some(Heard::Renewal(batch, Ok(answers))),
            (What::Action(site, id), say) => {
                self.last_answered = tag.map(|tag| (tag, site, id));
                Some(Heard::Reply(site, id, reply(say)?))
            }
            (What::Latch(call), Say::Latch(seen)) => Some(Heard::Latch(call, Ok(seen))),
            (What::Renewal(_) | What::Latch(_) | What::Nothing, _) => None,
        }
    }

    pub(super) fn end(
        &mut self,
        env: &mut Env<Words>,
        which: impl Fn(&Pending) -> bool,
        kind: ErrorKind,
    ) -> Vec<Heard> {
        let ending = self.pending.iter().filter(|(_, pending)| which(pending)).map(|(tag, _)| *tag);
        let ending: Vec<_> = ending.collect();
        let ended: Vec<_> = ending.into_iter().filter_map(|tag| self.pending.remove(&tag)).collect();
        for pending in &ended {
            if let (Ask::Acquire(claim, _), Some(Mistake::ReleasedTooSoon)) = (&pending.ask, self.mistake) {
                self.release_too_soon(env, pending, claim);
            }
        }
        ended.into_iter().filter_map(|pending| failed(pending.what, &pending.ask, kind, Effect::Unknown)).collect()
    }

    fn release_too_soon(&mut self, env: &mut Env<Words>, pending: &Pending, claim: &Claim) {
        if claim.replaces.is_some() {
            let (name, terms, certainty) = (claim.name.clone(), claim.terms, Certainty::Unknown);
            let request =
                ReleaseRequest { name, owner: claim.owner, terms, certainty, keep: None, evidence: Evidence::Nothing };
            self.submit(env, (pending.deadline, Duration::ZERO), What::Nothing, Ask::Release(request));
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

    pub(super) fn next_tag(&mut self) -> Tag {
        self.last_tag += 1;
        Tag(self.last_tag)
    }
}

impl Backend for Translator {
    type Talk = Words;

    fn run(&mut self, env: &mut Env<Words>, now: Moment, site: usize, action: Action) -> Vec<Heard> {
        if let Some(reply) = self.layer(site).outward(now, &action) {
            return vec![Heard::Reply(site, action.id, reply)];
        }
        let (what, ask) = (What::Action(site, action.id), self.request(env, action.request));
        self.submit(env, (now, action.within), what, ask).into_iter().collect()
    }

    fn renew(&mut self, env: &mut Env<Words>, now: Moment, batch: Batch) -> Vec<Heard> {
        let (time, ask) = ((now, batch.within), Ask::Renew(batch.leases.clone()));
        self.submit(env, time, What::Renewal(batch), ask).into_iter().collect()
    }

    fn latch(&mut self, env: &mut Env<Words>, now: Moment, calling: Calling) -> Vec<Heard> {
        let Calling { call, request, within } = calling;
        let ask = Ask::Latch(request, call, self.inbox);
        self.submit(env, (now, within), What::Latch(call), ask).into_iter().collect()
    }

    fn end_session(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        self.give_session_up(env, now)
    }

    fn has_session(&self) -> bool {
        self.session.is_some()
    }

    fn next_wake(&self) -> Option<Moment> {
        let lines = self.lanes.iter().filter_map(|lane| match lane.line {
            Line::Down { again_at } => Some(again_at),
            Line::Greeting { until, .. } => Some(until),
            Line::Up(_) => None,
        });
        let beat = self.session.iter().map(|session| session.beat_at);
        lines.chain(self.pending.values().map(|pending| pending.deadline)).chain(beat).min()
    }

    fn wake(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        for index in 0..self.lanes.len() {
            match self.lanes[index].line {
                Line::Down { again_at } if again_at <= now => self.greet(env, now, index),
                Line::Greeting { until, .. } if until <= now => self.hang_up(env, now, index),
                Line::Down { .. } | Line::Greeting { .. } | Line::Up(_) => {}
            }
        }
        self.beat(env, now);
        self.leave_silent(env, now)
    }

    fn said(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId, tag: Tag, say: Say) -> Vec<Heard> {
        if matches!(say, Say::SessionOver | Say::SessionMoved) && self.conns().contains(&conn) {
            return self.refused(env, now, conn, &say);
        }
        self.answered(env, now, conn, tag, say).into_iter().collect()
    }

    fn cut(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId) -> Vec<Heard> {
        for lane in self.lanes.iter_mut().filter(|lane| lane.conn() == Some(conn)) {
            lane.line = Line::Down { again_at: now + env.dice.millis(0, 300) };
            self.session.iter_mut().for_each(|session| session.disconnected(now));
        }
        self.end(env, |pending| pending.sent_on == Some(conn), ErrorKind::Unreachable)
    }

    fn hears(&self, conn: ConnId) -> bool {
        self.lanes[0].conn() == Some(conn)
    }

    fn conns(&self) -> Vec<ConnId> {
        self.lanes.iter().filter_map(Lane::conn).collect()
    }

    fn inward(&mut self, now: Moment, site: usize, input: Input) -> Input {
        self.layer(site).inward(now, input)
    }
}
