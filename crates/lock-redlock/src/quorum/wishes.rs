//! How high a token to wish for, so that all nodes can draw the same one.

use std::time::Duration;

use lock_core::node::NodeTime;
use lock_core::{FencingToken, Moment, Width};

use super::outgoing::NodeId;

/// How far a wish is ahead of the newest node's clock, in microseconds. Chosen: more than the time that an answer with
/// a clock takes.
const LEAD: u64 = 1000;
/// How long a higher wish of another client counts.
const OTHERS_FOR: Duration = Duration::from_secs(1);
/// How long a reading of a clock counts. The highest reading in that time is the one that was delayed least.
const CLOCK_FOR: Duration = Duration::from_secs(10);

/// What the nodes' clocks show, according to their answers.
#[derive(Debug)]
pub(super) struct Wishes {
    /// For each node: when its clock was read, and its reading at this client's time zero.
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

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: u64 = 5_000_000;

    fn at(millis: u64) -> Moment {
        Moment::ORIGIN + Duration::from_millis(millis)
    }

    fn wish(wishes: &mut Wishes, millis: u64) -> u64 {
        wishes.wish(at(millis), Width::ONE).get()
    }

    #[test]
    fn a_wish_is_ahead_of_the_newest_clock_and_above_the_last_wish() {
        let mut wishes = Wishes::new(2);
        assert_eq!([wish(&mut wishes, 0), wish(&mut wishes, 0)], [1, 2], "no clock is known");
        wishes.saw(at(1_000), NodeId(0), NodeTime(CLOCK));
        wishes.saw(at(1_000), NodeId(1), NodeTime(CLOCK - 1));
        assert_eq!(wish(&mut wishes, 1_500), CLOCK + 500_000 + LEAD);
        assert_eq!(wishes.wish(at(1_500), Width::MAX).get(), CLOCK + 500_000 + LEAD + Width::MAX.get());
    }

    #[test]
    fn the_reading_that_was_the_least_late_counts_until_it_is_old() {
        let mut wishes = Wishes::new(1);
        wishes.saw(at(0), NodeId(0), NodeTime(CLOCK));
        wishes.saw(at(9_999), NodeId(0), NodeTime(CLOCK));
        assert_eq!(wish(&mut wishes, 9_999), CLOCK + 9_999_000 + LEAD, "that one was on its way for longer");
        wishes.saw(at(20_000), NodeId(0), NodeTime(CLOCK + 30_000_000));
        assert_eq!(wish(&mut wishes, 20_000), CLOCK + 30_000_000 + LEAD);
        wishes.saw(at(30_000), NodeId(0), NodeTime(CLOCK + 37_000_000));
        assert_eq!(wish(&mut wishes, 31_000), CLOCK + 38_000_000 + LEAD, "the clock may have been set back");
    }

    #[test]
    fn a_clock_beyond_all_tokens_is_not_followed() {
        let mut wishes = Wishes::new(1);
        wishes.saw(at(0), NodeId(0), NodeTime(FencingToken::MAX.get()));
        assert_eq!(wish(&mut wishes, 0), 1);
    }

    #[test]
    fn others_who_wish_for_more_are_followed_for_a_second() {
        let mut wishes = Wishes::new(1);
        wishes.saw(at(0), NodeId(0), NodeTime(CLOCK));
        wishes.was_outbid(at(0), FencingToken::new(2 * CLOCK).unwrap());
        wishes.was_outbid(at(0), FencingToken::new(2 * CLOCK - 7).unwrap());
        assert_eq!(wish(&mut wishes, 999), 2 * CLOCK + 999_000);
        let mut wishes = Wishes::new(1);
        wishes.was_outbid(at(0), FencingToken::new(2 * CLOCK).unwrap());
        assert_eq!(wish(&mut wishes, 1_000), 1, "they may be gone");
    }
}
