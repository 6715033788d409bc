//! How requests get to the nodes and outcomes come back: an ordered connection to each for the users, and another one for
//! the keeper.

use std::collections::{BTreeMap, VecDeque};

use lock_core::node::Ask;
use lock_core::{BackendError, Effect, ErrorKind, Moment, Operation};
use lock_redlock::quorum::{NodeId, Outgoing, Recovery};

use super::course::Side;
use super::words::{Asked, Said, Words};
use crate::env::Env;
use crate::fault::Fault;
use crate::network::{ConnId, ConnectionEnd, ProcessId, StoreId, Tag};

#[derive(Debug)]
pub(super) struct Post {
    process: ProcessId,
    members: Vec<NodeId>,
    /// By node: the users' and the keeper's.
    lines: Vec<[Line; 2]>,
    pending: BTreeMap<Tag, Sent>,
    /// Requests whose outcome was not collected yet.
    outcomes: VecDeque<(Sent, Said)>,
    last_tag: u64,
}

#[derive(Debug)]
enum Line {
    /// Nothing is sent before that; these requests wait.
    Down(Moment, VecDeque<Tag>),
    Up(ConnId),
}

/// Something in flight to a node.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) outgoing: Outgoing,
    pub(super) side: Side,
    /// How its node would come to vote by it.
    pub(super) recovery: Option<Recovery>,
    pub(super) deadline: Moment,
    pub(super) sent_on: Option<ConnId>,
    /// Whether it was sent on a connection that broke, and is sent once more.
    pub(super) is_repeated: bool,
}

impl Sent {
    /// Like a Redis node, sends an idempotent request once more if its connection breaks.
    fn repeat(&mut self) -> bool {
        let repeats = !self.is_repeated && matches!(self.outgoing.ask, Ask::Release(_) | Ask::Fence { .. });
        if repeats {
            (self.is_repeated, self.sent_on) = (true, None);
        }
        repeats
    }

    fn asked(&self) -> Asked {
        Asked { ask: self.outgoing.ask.clone(), recovery: self.recovery }
    }
}

impl Post {
    pub(super) fn new(process: ProcessId, members: Vec<NodeId>) -> Self {
        let down = || Line::Down(Moment::ORIGIN, VecDeque::new());
        let lines = members.iter().map(|_| [down(), down()]).collect();
        Self { process, members, lines, pending: BTreeMap::new(), outcomes: VecDeque::new(), last_tag: 0 }
    }

    /// The outcome that arrived first.
    pub(super) fn take_outcome(&mut self) -> Option<(Sent, Said)> {
        self.outcomes.pop_front()
    }

    /// A request has this outcome.
    pub(super) fn came_back(&mut self, sent: Sent, said: Said) {
        self.outcomes.push_back((sent, said));
    }

    pub(super) fn send(&mut self, env: &mut Env<Words>, now: Moment, mut sent: Sent) {
        self.last_tag += 1;
        let (tag, NodeId(node), side) = (Tag(self.last_tag), sent.outgoing.node, sent.side as usize);
        self.reconnect(env, now, node, side);
        match &mut self.lines[node][side] {
            Line::Up(conn) => {
                sent.sent_on = Some(*conn);
                env.ask(*conn, tag, sent.asked());
            }
            Line::Down(..) if env.dice.chance(300) => {
                env.fired(Fault::NotSent);
                return self.came_back(sent, failed(ErrorKind::Unreachable, Effect::None));
            }
            Line::Down(_, waiting) => waiting.push_back(tag),
        }
        self.pending.insert(tag, sent);
    }

    /// Reconnects if it is time. What waited is sent first.
    fn reconnect(&mut self, env: &mut Env<Words>, now: Moment, node: usize, side: usize) {
        let line = &mut self.lines[node][side];
        let waiting = match line {
            Line::Down(again_at, waiting) if *again_at <= now => std::mem::take(waiting),
            Line::Down(..) | Line::Up(_) => return,
        };
        let NodeId(store) = self.members[node];
        let conn = env.network.connect(self.process, StoreId(store));
        *line = Line::Up(conn);
        for tag in waiting {
            if let Some(sent) = self.pending.get_mut(&tag) {
                sent.sent_on = Some(conn);
                env.ask(conn, tag, sent.asked());
            }
        }
    }

    /// When time alone makes something happen.
    pub(super) fn next_wake(&self) -> Option<Moment> {
        let lines = self.lines.iter().flatten().filter_map(|line| match line {
            Line::Down(again_at, waiting) => (!waiting.is_empty()).then_some(*again_at),
            Line::Up(_) => None,
        });
        lines.chain(self.pending.values().map(|sent| sent.deadline)).min()
    }

    /// Reconnects if a request waits for it, and ends requests that take too long.
    pub(super) fn wake(&mut self, env: &mut Env<Words>, now: Moment) {
        for node in 0..self.lines.len() {
            for side in [Side::Users as usize, Side::Keeper as usize] {
                if matches!(&self.lines[node][side], Line::Down(_, waiting) if !waiting.is_empty()) {
                    self.reconnect(env, now, node, side);
                }
            }
        }
        // A request that took too long may be given up with its connection.
        for conn in self.fail(|sent| sent.deadline <= now, ErrorKind::Timeout) {
            if env.dice.chance(300) && self.uses(conn) {
                env.leave(conn, ConnectionEnd::Said);
                self.cut(env, now, conn);
            }
        }
    }

    pub(super) fn said(&mut self, conn: ConnId, tag: Tag, said: Said) {
        if self.pending.get(&tag).is_some_and(|sent| sent.sent_on == Some(conn))
            && let Some(sent) = self.pending.remove(&tag)
        {
            self.came_back(sent, said);
        }
    }

    pub(super) fn cut(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId) {
        let again_at = now + env.dice.millis(0, 300);
        let mut lines = self.lines.iter_mut().flatten();
        if let Some(line) = lines.find(|line| matches!(line, Line::Up(on) if *on == conn)) {
            let broken = self.pending.iter_mut().filter(|(_, sent)| sent.sent_on == Some(conn));
            let repeated = broken.filter_map(|(tag, sent)| sent.repeat().then_some(*tag)).collect();
            *line = Line::Down(again_at, repeated);
        }
        self.fail(|sent| sent.sent_on == Some(conn), ErrorKind::Unreachable);
    }

    /// These have no answer, and never will. Returns the connections on which they were sent.
    fn fail(&mut self, which: impl Fn(&Sent) -> bool, kind: ErrorKind) -> Vec<ConnId> {
        let failing: Vec<_> = self.pending.iter().filter(|(_, sent)| which(sent)).map(|(tag, _)| *tag).collect();
        let mut conns = Vec::new();
        for tag in failing {
            let Some(sent) = self.pending.remove(&tag) else { continue };
            conns.extend(sent.sent_on);
            let said = match sent.sent_on {
                Some(_) => failed(kind, Effect::Unknown),
                None if sent.is_repeated => failed(ErrorKind::Unreachable, Effect::Unknown),
                None => failed(ErrorKind::Unreachable, Effect::None),
            };
            self.came_back(sent, said);
        }
        conns
    }

    fn uses(&self, conn: ConnId) -> bool {
        self.conns().contains(&conn)
    }

    pub(super) fn conns(&self) -> Vec<ConnId> {
        let up = |line: &Line| match line {
            Line::Up(conn) => Some(*conn),
            Line::Down(..) => None,
        };
        self.lines.iter().flatten().filter_map(up).collect()
    }
}

fn failed(kind: ErrorKind, effect: Effect) -> Said {
    let error = BackendError::new("node", Operation::Acquire, kind, effect, "did not work");
    Said { outcome: Err(error), ran: 0 }
}
