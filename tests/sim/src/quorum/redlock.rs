//! What a process asks a quorum through, as both colours of the real backend do: the quorum, and the errands that run.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Told};
use lock_core::station::{Action, ActionId, Input, Reply, Request};
use lock_core::{Answer, Batch, Fenced, Moment, Released};
use lock_redlock::quorum::{Acquire, Guard, Letter, Purpose, Quorum, Release, Renew};

use super::Mistake;
use super::course::{Course, Note, Over, Side};
use super::post::{Post, Sent};
use super::words::{Asked, Said};
use crate::client::{Backend, Heard};
use crate::env::Env;
use crate::network::{ConnId, ProcessId, Tag};

/// How long each step of a pass of the guard may take.
const GUARD_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Redlock {
    quorum: Quorum,
    nodes: usize,
    post: Post,
    courses: BTreeMap<u64, Course>,
    notes: Vec<Note>,
    last_number: u64,
    mistake: Option<Mistake>,
    /// When claims were asked for, where a mistake needs that.
    asked_at: BTreeMap<(usize, ActionId), Moment>,
}

impl Redlock {
    pub(super) fn new(process: ProcessId, quorum: Quorum, nodes: usize, mistake: Option<Mistake>) -> Self {
        Self {
            quorum,
            nodes,
            post: Post::new(process, nodes),
            courses: BTreeMap::new(),
            notes: Vec::new(),
            last_number: 0,
            mistake,
            asked_at: BTreeMap::new(),
        }
    }

    /// The guard's first pass.
    pub(super) fn connect(&mut self, env: &mut Env<Self>, now: Moment) {
        self.begin_guard(env, now, Side::Users);
        self.go_on(env, now);
    }

    /// What the rules have to know since this was last asked.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn begin(&mut self, env: &mut Env<Self>, now: Moment, course: Course) -> Vec<Heard> {
        let number = self.number();
        self.courses.insert(number, course);
        let mut heard = Vec::new();
        self.advance(env, now, number, &mut heard);
        heard.extend(self.go_on(env, now));
        heard
    }

    fn begin_guard(&mut self, env: &mut Env<Self>, now: Moment, side: Side) {
        let epochs = (0..self.nodes).map(|_| Epoch::from_random(env.number())).collect();
        let guard = Guard::begin(&mut self.quorum, now, Purpose::Watch, GUARD_WITHIN, epochs);
        let number = self.number();
        self.courses.insert(number, Course::guard(guard, side));
        self.advance(env, now, number, &mut Vec::new());
    }

    /// Takes outcomes in, until there are none.
    fn go_on(&mut self, env: &mut Env<Self>, now: Moment) -> Vec<Heard> {
        let mut heard = Vec::new();
        while let Some((sent, said)) = self.post.take_outcome() {
            if let Some(course) = self.courses.get_mut(&sent.course) {
                course.heard(&mut self.quorum, now, &sent.letter, said);
                self.advance(env, now, sent.course, &mut heard);
            }
        }
        heard
    }

    /// Sends what an errand has to be sent, and looks whether its verdict fell. After each the guard passes if it is time.
    fn advance(&mut self, env: &mut Env<Self>, now: Moment, number: u64, heard: &mut Vec<Heard>) {
        let Some(mut course) = self.courses.remove(&number) else { return };
        while let Some(letter) = course.next_letter() {
            self.send(env, now, number, &course, letter);
        }
        let verdict = course.take_verdict(&mut self.notes, &mut env.tally);
        let (side, fell) = (course.side, verdict.is_some());
        heard.extend(verdict.flatten());
        if course.open > 0 {
            self.courses.insert(number, course);
        } else {
            self.notes.extend(course.end());
        }
        if fell && self.quorum.wants_guard(now) {
            self.begin_guard(env, now, side);
        }
    }

    fn send(&mut self, env: &mut Env<Self>, now: Moment, number: u64, course: &Course, letter: Letter) {
        let (told, letter) = (self.mistaken(course, &letter), self.altered(letter));
        let enough = self.nodes - self.quorum.majority() + 1;
        let recovery = matches!(letter.ask, Ask::Install { .. }).then(|| course.recovery(letter.node, enough));
        let deadline = now + letter.within;
        let sent = Sent { course: number, letter, side: course.side, recovery, deadline, sent_on: None };
        match told {
            Some(told) => self.post.came_back(sent, Said { outcome: Ok(told), ran: 0 }),
            None => self.post.send(env, now, sent),
        }
    }

    /// What is taken for an answer where a mistake says so.
    fn mistaken(&self, course: &Course, letter: &Letter) -> Option<Told> {
        match (self.mistake?, &letter.ask) {
            (Mistake::NoSecondRound, Ask::Fence { .. }) if course.owner().is_some() => {
                Some(Told::Fenced(vec![Fenced::Acknowledged]))
            }
            (Mistake::NoReleaseToAll, Ask::Release(_)) if course.owner().is_some() && course.over == Over::No => {
                Some(Told::Released(Released::Released))
            }
            _ => None,
        }
    }

    fn altered(&self, mut letter: Letter) -> Letter {
        if let (Some(Mistake::OwnCounter), Ask::Install { counter, .. }) = (self.mistake, &mut letter.ask) {
            *counter = 0;
        }
        letter
    }
}

impl Backend for Redlock {
    type Ask = Asked;
    type Say = Said;

    fn run(&mut self, env: &mut Env<Self>, now: Moment, site: usize, action: Action) -> Vec<Heard> {
        let course = match action.request {
            Request::Acquire(claim) => {
                self.notes.push(Note::Began(claim.name.clone(), claim.owner));
                if self.mistake == Some(Mistake::CountedFromAnswer) {
                    self.asked_at.insert((site, action.id), now);
                }
                let errand = Acquire::begin(&mut self.quorum, now, &claim, action.within);
                Course::acquire(errand, claim, site, action.id)
            }
            Request::Release(request) => {
                let errand = Release::begin(&mut self.quorum, now, &request, action.within);
                Course::release(errand, site, action.id)
            }
        };
        self.begin(env, now, course)
    }

    fn renew(&mut self, env: &mut Env<Self>, now: Moment, batch: Batch) -> Vec<Heard> {
        let errand = Renew::begin(&mut self.quorum, now, &batch.leases, batch.within);
        self.begin(env, now, Course::renew(errand, batch))
    }

    fn next_wake(&self) -> Option<Moment> {
        self.post.next_wake()
    }

    fn wake(&mut self, env: &mut Env<Self>, now: Moment) -> Vec<Heard> {
        self.post.wake(env, now);
        self.go_on(env, now)
    }

    fn said(&mut self, env: &mut Env<Self>, now: Moment, conn: ConnId, tag: Tag, said: Said) -> Vec<Heard> {
        self.post.said(conn, tag, said);
        self.go_on(env, now)
    }

    fn cut(&mut self, env: &mut Env<Self>, now: Moment, conn: ConnId) -> Vec<Heard> {
        self.post.cut(env, now, conn);
        self.go_on(env, now)
    }

    /// Nodes tell nothing unasked here.
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
                Input::Reply(id, Reply::Acquire(Ok(Answer::Granted { lease, valid_for }))),
            ) => {
                let asked_at = self.asked_at.get(&(site, id)).copied().unwrap_or(now);
                let valid_for = valid_for + now.since(asked_at);
                Input::Reply(id, Reply::Acquire(Ok(Answer::Granted { lease, valid_for })))
            }
            (_, input) => input,
        }
    }
}
