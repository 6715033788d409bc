//! A connection to the server, made again whenever it ends.

use std::collections::VecDeque;

use lock_core::Moment;

use crate::network::{ConnId, Tag};

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) line: Line,
    /// What waits for a connection.
    pub(super) held_back: VecDeque<Tag>,
    pub(super) made: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Down { again_at: Moment },
    Greeting { conn: ConnId, tag: Tag, until: Moment },
    Up(ConnId),
}

impl Lane {
    /// Not connected yet.
    pub(super) fn new() -> Self {
        Self { line: Line::Down { again_at: Moment::ORIGIN }, held_back: VecDeque::new(), made: 0 }
    }

    pub(super) fn conn(&self) -> Option<ConnId> {
        match self.line {
            Line::Up(conn) | Line::Greeting { conn, .. } => Some(conn),
            Line::Down { .. } => None,
        }
    }
}
