//! The backend of a process for a quorum, like the async and the blocking backend: the real quorum, and what it sends.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Told};
use lock_core::station::{Action, ActionId, Input, Reply, Request as StationRequest};
use lock_core::{Answer, Batch, Fenced, Moment, Released};
use lock_redlock::quorum::{EpochSource, NodeId, Outgoing, Output, Purpose, Quorum, Request, RequestId};

use super::Mistake;
use super::course::{Course, Of, Over, Record, Side};
use super::post::{Post, Sent};
use super::words::{Said, Words};
use crate::client::{Backend, Heard};
use crate::env::Env;
use crate::network::{ConnId, ProcessId, Tag};

/// How long each step of the first recovery pass may take.
const PASS_WITHIN: Duration = Duration::from_secs(1);

/// The epochs that one process draws. No other process draws the same.
#[derive(Debug)]
pub(super) struct Epochs {
    process: ProcessId,
    drawn: u64,
}

#[derive(Debug)]
pub(crate) struct Redlock {
    quorum: Quorum,
    /// The nodes by their numbers in the world. Records name them by these.
    members: Vec<NodeId>,
    post: Post,
    courses: BTreeMap<RequestId, Course>,
    records: Vec<Record>,
    mistake: Option<Mistake>,
    /// When claims were sent, if a mistake needs that.
    asked_at: BTreeMap<(usize, ActionId), Moment>,
}

impl Epochs {
    pub(super) fn of(process: ProcessId) -> Self {
        Self { process, drawn: 0 }
    }
}

impl EpochSource for Epochs {
    fn draw(&mut self) -> io::Result<Epoch> {
        self.drawn += 1;
        Ok(Epoch::from_random(self.process.0 << 32 | self.drawn))
    }
}

impl Redlock {
    pub(super) fn new(process: ProcessId, quorum: Quorum, members: Vec<NodeId>, mistake: Option<Mistake>) -> Self {
        Self {
            quorum,
            post: Post::new(process, members.clone()),
            members,
            courses: BTreeMap::new(),
            records: Vec::new(),
            mistake,
            asked_at: BTreeMap::new(),
        }
    }

    /// The first recovery pass.
    pub(super) fn connect(&mut self, env: &mut Env<Words>, now: Moment, purpose: Purpose) {
        let pass = Request::Pass(purpose);
        self.begin(env, now, (pass, PASS_WITHIN), Side::Users, Of::Pass);
    }

    /// What the rules have to know since this was last called.
    pub(super) fn take_records(&mut self) -> Vec<Record> {
        let records = std::mem::take(&mut self.records);
        records.into_iter().map(|record| record.renamed(|NodeId(index)| self.members[index])).collect()
    }

    pub(super) fn members(&self) -> impl Iterator<Item = NodeId> {
        self.members.iter().copied()
    }

    fn begin(
        &mut self,
        env: &mut Env<Words>,
        now: Moment,
        (request, within): (Request, Duration),
        side: Side,
        of: Of,
    ) -> Vec<Heard> {
        let id = self.quorum.begin(now, request, within);
        self.courses.insert(id, Course::new(of));
        let mut heard = Vec::new();
        self.take_outputs(env, now, side, &mut heard);
        heard.extend(self.go_on(env, now));
        heard
    }

    /// Processes outcomes, until there are none.
    fn go_on(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        let mut heard = Vec::new();
        while let Some((sent, said)) = self.post.take_outcome() {
            if let Some(course) = self.courses.get_mut(&sent.outgoing.request) {
                course.heard(&sent.outgoing, &said);
            }
            self.quorum.heard(now, sent.outgoing, said.outcome);
            self.take_outputs(env, now, sent.side, &mut heard);
        }
        heard
    }

    /// Carries out the quorum's outputs over these connections, including passes that it begins by itself and requests that were held
    /// back until an earlier outcome.
    fn take_outputs(&mut self, env: &mut Env<Words>, now: Moment, side: Side, heard: &mut Vec<Heard>) {
        while let Some(output) = self.quorum.poll() {
            match output {
                Output::Send(outgoing) => {
                    let course = self.courses.entry(outgoing.request);
                    course.or_insert_with(|| Course::new(Of::Pass));
                    self.send(env, now, side, outgoing);
                }
                Output::Done(id, verdict) => {
                    let course = self.courses.get_mut(&id);
                    heard.extend(course.and_then(|course| course.done(verdict, &mut self.records, &mut env.tally)));
                }
            }
        }
        let is_over = |id: &RequestId| self.quorum.open(*id) == 0;
        for id in self.courses.keys().copied().filter(is_over).collect::<Vec<_>>() {
            self.records.extend(self.courses.remove(&id).and_then(Course::end));
        }
    }

    fn send(&mut self, env: &mut Env<Words>, now: Moment, side: Side, outgoing: Outgoing) {
        let Some(course) = self.courses.get(&outgoing.request) else { return };
        let told = self.mistaken(course, &outgoing);
        let enough = self.members.len() - self.quorum.majority() + 1;
        let recovery = matches!(outgoing.ask, Ask::Install { .. }).then(|| course.recovery(outgoing.node, enough));
        let deadline = now + outgoing.within;
        let outgoing = self.altered(outgoing);
        let sent = Sent { outgoing, side, recovery, deadline, sent_on: None, is_repeated: false };
        match told {
            Some(told) => self.post.came_back(sent, Said { outcome: Ok(told), ran: 0 }),
            None => self.post.send(env, now, sent),
        }
    }

    /// What replaces an answer if a mistake says so.
    fn mistaken(&self, course: &Course, outgoing: &Outgoing) -> Option<Told> {
        match (self.mistake?, &outgoing.ask) {
            (Mistake::NoSecondRound, Ask::Fence { .. }) if course.owner().is_some() => {
                Some(Told::Fenced(vec![Fenced::Acknowledged]))
            }
            (Mistake::NoReleaseToAll, Ask::Release(_)) if course.owner().is_some() && course.over == Over::No => {
                Some(Told::Released(Released::Released))
            }
            _ => None,
        }
    }

    fn altered(&self, mut outgoing: Outgoing) -> Outgoing {
        if let (Some(Mistake::OwnCounter), Ask::Install { counter, .. }) = (self.mistake, &mut outgoing.ask) {
            *counter = 0;
        }
        outgoing
    }
}

impl Backend for Redlock {
    type Talk = Words;

    fn run(&mut self, env: &mut Env<Words>, now: Moment, site: usize, action: Action) -> Vec<Heard> {
        let (request, of) = match action.request {
            StationRequest::Acquire(claim) => {
                self.records.push(Record::Began(claim.name.clone(), claim.owner));
                if self.mistake == Some(Mistake::CountedFromAnswer) {
                    self.asked_at.insert((site, action.id), now);
                }
                (Request::Acquire(claim.clone()), Of::Claim(claim, site, action.id))
            }
            StationRequest::Release(request) => (Request::Release(request), Of::Release(site, action.id)),
        };
        self.begin(env, now, (request, action.within), Side::Users, of)
    }

    fn renew(&mut self, env: &mut Env<Words>, now: Moment, batch: Batch) -> Vec<Heard> {
        let (request, within) = (Request::Renew(batch.leases.clone()), batch.within);
        self.begin(env, now, (request, within), Side::Keeper, Of::Renewal(batch))
    }

    fn next_wake(&self) -> Option<Moment> {
        self.post.next_wake()
    }

    fn wake(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        self.post.wake(env, now);
        self.go_on(env, now)
    }

    fn said(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId, tag: Tag, said: Said) -> Vec<Heard> {
        self.post.said(conn, tag, said);
        self.go_on(env, now)
    }

    fn cut(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId) -> Vec<Heard> {
        self.post.cut(env, now, conn);
        self.go_on(env, now)
    }

    /// Nodes push nothing here.
    fn hears(&self, _: ConnId) -> bool {
        false
    }

    fn conns(&self) -> Vec<ConnId> {
        self.post.conns()
    }

    fn inward(&mut self, now: Moment, site: usize, input: Input) -> Input {
        match (self.mistake, input) {
            (
                Some(Mistake::CountedFromAnswer),
                Input::Reply(id, Reply::Acquire(Ok(Answer::Granted { lease, valid_for, .. }))),
            ) => {
                let asked_at = self.asked_at.get(&(site, id)).copied().unwrap_or(now);
                let valid_for = valid_for + now.since(asked_at);
                Input::Reply(id, Reply::Acquire(Ok(Answer::Granted { lease, valid_for, wanted: false })))
            }
            (_, input) => input,
        }
    }
}
