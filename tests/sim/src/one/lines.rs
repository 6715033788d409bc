//! How connections are made.

use std::time::Duration;

use lock_core::Moment;

use super::backend::Translator;
use super::lane::{Lane, Line};
use super::words::{Ask, Words};
use crate::client::Heard;
use crate::env::Env;
use crate::network::{ConnId, ConnectionEnd, Tag};

/// How long the first words on a connection may take.
const GREETING_WITHIN: Duration = Duration::from_secs(1);

impl Translator {
    pub(super) fn greet(&mut self, env: &mut Env<Words>, now: Moment, index: usize) {
        let (conn, tag) = (env.network.connect(self.process, self.server), self.next_tag());
        let inbox = self.inbox.filter(|_| index == 0);
        env.ask(conn, tag, self.session.as_ref().map_or(Ask::Hello(inbox), |session| Ask::Join(session.id, inbox)));
        self.lanes[index].line = Line::Greeting { conn, tag, until: now + GREETING_WITHIN };
    }

    /// Tries again a little later.
    pub(super) fn hang_up(&mut self, env: &mut Env<Words>, now: Moment, index: usize) {
        if let Some(conn) = self.lanes[index].conn() {
            env.leave(conn, ConnectionEnd::Said);
        }
        self.lanes[index].line = Line::Down { again_at: now + env.dice.millis(10, 500) };
    }

    pub(super) fn greeted(&self, conn: ConnId, tag: Tag) -> Option<usize> {
        let greets =
            |lane: &Lane| matches!(lane.line, Line::Greeting { conn: on, tag: by, .. } if on == conn && by == tag);
        self.lanes.iter().position(greets)
    }

    pub(super) fn connected(&mut self, env: &mut Env<Words>, conn: ConnId, index: usize) -> Option<Heard> {
        let lane = &mut self.lanes[index];
        lane.line = Line::Up(conn);
        lane.made += 1;
        while let Some(tag) = lane.held_back.pop_front() {
            if let Some(pending) = self.pending.get_mut(&tag) {
                pending.sent_on = Some(conn);
                env.ask(conn, tag, pending.in_flight().clone());
            }
        }
        (index == 0 && lane.made > 1).then_some(Heard::Reconnected)
    }
}
