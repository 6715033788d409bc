//! How high a token to wish for, so that all nodes can draw the same one.

use std::time::Duration;

use lock_core::node::NodeTime;
use lock_core::{FencingToken, Moment, Width};

use super::node::NodeId;

/// How far a wish is ahead of the newest node's clock, in microseconds. More than the time that an answer with a clock takes.
const LEAD: u64 = 1000;
/// How long a higher wish of another client counts.
const OTHERS_FOR: Duration = Duration::from_secs(1);
/// How long a reading of a clock counts. The highest reading in that time is the one that was delayed least.
const CLOCK_FOR: Duration = Duration::from_secs(10);

/// What the nodes' clocks show, according to their answers.
#[derive(Debug)]
pub(super) struct Wishes {
    /// For each node: what its clock showed at the origin of ours, and when we read it.
    clocks: Vec<Option<(Moment, u64)>>,
    /// The same for the wishes of other clients.
    others: Option<(Moment, u64)>,
    last: u64,
}

impl Wishes {
    pub(super) fn new(nodes: usize) -> Self {
        Self { clocks: vec![None; nodes], others: None, last: 0 }
    }

    /// Records a node's clock. A clock beyond all tokens is wrong, and a wish that followed it would use them up.
    pub(super) fn saw(&mut self, now: Moment, node: NodeId, clock: NodeTime) {
        if clock.0 >= FencingToken::MAX.get() {
            return;
        }
        let height = clock.0.saturating_sub(micros(now));
        match &mut self.clocks[node.0] {
            Some((at, known)) if *known >= height && now.since(*at) < CLOCK_FOR => {}
            known => *known = Some((now, height)),
        }
    }

    /// A node drew a token above the wish, because another client wished for a higher one.
    pub(super) fn was_outbid(&mut self, now: Moment, token: FencingToken) {
        let ahead = token.get().saturating_sub(LEAD).saturating_sub(micros(now));
        let known = self.others(now).unwrap_or(0);
        self.others = Some((now, known.max(ahead)));
    }

    /// The token to wish for, above all earlier wishes and all clocks.
    pub(super) fn wish(&mut self, now: Moment, width: Width) -> FencingToken {
        let newest = self.clocks.iter().flatten().map(|(_, height)| *height).chain(self.others(now)).max();
        let height = newest.map_or(0, |newest| newest.saturating_add(micros(now)).saturating_add(LEAD));
        self.last = height.max(self.last.saturating_add(width.get()));
        FencingToken::new(self.last).unwrap_or(FencingToken::MAX)
    }

    fn others(&self, now: Moment) -> Option<u64> {
        self.others.filter(|(at, _)| now.since(*at) < OTHERS_FOR).map(|(_, ahead)| ahead)
    }
}

fn micros(now: Moment) -> u64 {
    now.as_nanos() / 1000
}
