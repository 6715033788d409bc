//! Where everything is on the picture of a history. Time runs downwards, and each event has rows of its own, so that no text
//! overlaps another. Lengths are in pixels. Pure.

use std::borrow::Cow;

use super::history::{Event, History, Lane, Place, Tone};
use crate::shared::chart::between_words;

/// The picture's width, and that of the column of times at its left.
pub(super) const WIDTH: u32 = 720;
pub(super) const TIMES: u32 = 72;
/// The height of a line of text.
pub(super) const LINE: u32 = 17;
/// Where the names of the lanes are, and where the events begin.
pub(super) const HEADS: u32 = 66;
const BODY: u32 = HEADS + 44;
/// The distance of events, and how much a millisecond adds, up to a limit. Beyond it the axis is broken.
const APART: u32 = 13;
const MILLIS_A_PIXEL: u64 = 8;
const LONGEST: u32 = 26;
/// Between a text and the line of a lane.
const MARGIN: u32 = 16;

/// An event with its place.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) event: &'a Event,
    pub(super) lines: Vec<String>,
    /// The baseline of its first line.
    pub(super) text_y: u32,
    pub(super) text_x: u32,
    pub(super) anchor: Anchor,
    /// Where its arrow or dot is.
    pub(super) y: u32,
    /// The middle of a break of the axis before it.
    pub(super) pause_y: Option<u32>,
}

impl Row<'_> {
    /// The room that its longest line takes at most.
    pub(super) fn width(&self) -> u32 {
        let longest = self.lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
        character(self.event.tone) * u32::try_from(longest).unwrap_or_default()
    }
}

/// Which end of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The places of everything.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    pub(super) rows: Vec<Row<'a>>,
    lanes: u32,
    /// Where the lanes end.
    pub(super) bottom: u32,
}

impl<'a> Layout<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let lanes = u32::try_from(history.lanes.len()).unwrap_or(1).max(1);
        let mut layout = Self { rows: Vec::new(), lanes, bottom: BODY };
        for event in &history.events {
            let before = layout.rows.last().map_or(event.at_us, |row| row.event.at_us);
            layout.place(event, event.at_us.saturating_sub(before) / 1000);
        }
        layout.bottom += 18;
        layout
    }

    fn place(&mut self, event: &'a Event, waited_ms: u64) {
        let gap = u32::try_from(waited_ms / MILLIS_A_PIXEL).unwrap_or(u32::MAX);
        let is_broken = gap > LONGEST;
        let gap = APART + gap.min(LONGEST);
        let pause_y = is_broken.then_some(self.bottom + gap / 2 + 2);
        let (text_x, room, anchor) = self.room(event.place);
        let lines = wrapped(&event.text, room / character(event.tone));
        let height = LINE * u32::try_from(lines.len()).unwrap_or(1);
        let text_y = self.bottom + gap + 12;
        let y = match event.place {
            Place::Note(_) => text_y - 4,
            Place::Message { .. } | Place::Refused { .. } | Place::Lost { .. } => self.bottom + gap + height + 3,
        };
        self.bottom += gap + height + if matches!(event.place, Place::Note(_)) { 0 } else { 6 };
        self.rows.push(Row { event, lines, text_y, text_x, anchor, y, pause_y });
    }

    /// Where the text of an event is, its room, and which of its ends is there.
    fn room(&self, place: Place) -> (u32, u32, Anchor) {
        match place {
            Place::Message { from, to } | Place::Refused { from, to } => self.above(self.x(from), self.x(to)),
            Place::Lost { from, to } => self.above(self.x(from), self.lost_x(from, to)),
            Place::Note(lane) if lane.0 + 1 == self.lanes as usize => {
                (self.x(lane) - MARGIN, self.distance().saturating_sub(2 * MARGIN), Anchor::End)
            }
            Place::Note(lane) => (self.x(lane) + MARGIN, self.distance().saturating_sub(2 * MARGIN), Anchor::Start),
        }
    }

    /// Above an arrow.
    fn above(&self, from: u32, to: u32) -> (u32, u32, Anchor) {
        (from.midpoint(to), from.abs_diff(to).saturating_sub(MARGIN), Anchor::Middle)
    }

    /// Where a message is lost: on three quarters of its way.
    pub(super) fn lost_x(&self, from: Lane, to: Lane) -> u32 {
        let (from, to) = (self.x(from), self.x(to));
        from.midpoint(to).midpoint(to)
    }

    fn distance(&self) -> u32 {
        (WIDTH - TIMES) / self.lanes
    }

    /// The middle of a lane.
    pub(super) fn x(&self, lane: Lane) -> u32 {
        TIMES + self.distance() / 2 + self.distance() * u32::try_from(lane.0).unwrap_or_default()
    }

    /// The height of a moment, between those of the events around it.
    pub(super) fn y_at(&self, at_us: u64) -> u32 {
        let mut before = (0, BODY);
        for row in &self.rows {
            if row.event.at_us == at_us {
                return row.y;
            }
            if row.event.at_us > at_us {
                let time = row.event.at_us.saturating_sub(before.0);
                let height = u64::from(row.y.saturating_sub(before.1));
                let part = height * at_us.saturating_sub(before.0) / time;
                return before.1 + u32::try_from(part).unwrap_or_default();
            }
            before = (row.event.at_us, row.y);
        }
        self.bottom
    }

    /// Where a bar is that begins at this moment: not below the last event.
    pub(super) fn y_from(&self, at_us: u64) -> u32 {
        let last = self.rows.last().filter(|row| row.event.at_us <= at_us);
        last.map_or_else(|| self.y_at(at_us), |row| row.y)
    }
}

/// The most that a character takes on average: what matters is bold.
fn character(tone: Tone) -> u32 {
    match tone {
        Tone::Plain | Tone::Fault => 7,
        Tone::Wrong | Tone::Guarded => 8,
    }
}

/// The text in lines of at most this many characters, unless a word is longer.
pub(super) fn wrapped(text: &str, most: u32) -> Vec<String> {
    let columns = usize::try_from(most).unwrap_or(usize::MAX);
    textwrap::wrap(text, between_words(columns)).into_iter().map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failures::history::{Ended, Variant};

    fn history() -> History {
        let message = Place::Message { from: Lane(0), to: Lane(2) };
        let places = [message, Place::Note(Lane(0)), Place::Note(Lane(2)), Place::Lost { from: Lane(1), to: Lane(0) }];
        let event = |(at, place)| Event { at_us: at, place, text: "some words ".repeat(9), tone: Tone::Plain };
        let times = [0, 10, 300_000, 900_000];
        History {
            scene: "s",
            title: "t",
            discarded: Vec::new(),
            variant: Variant::With,
            lock: "",
            lanes: vec!["A", "B", "C"],
            events: times.into_iter().zip(places).map(event).collect(),
            bars: Vec::new(),
            ended: Ended::prevented(""),
        }
    }

    #[test]
    fn no_text_overlaps_another_or_leaves_the_picture() {
        let history = history();
        let layout = Layout::of(&history);
        let mut free = HEADS;
        for row in &layout.rows {
            assert!(row.text_y - 12 >= free, "{row:?}");
            free = row.text_y + LINE * u32::try_from(row.lines.len() - 1).unwrap();
            let width = row.width();
            let (left, right) = match row.anchor {
                Anchor::Start => (row.text_x, row.text_x + width),
                Anchor::Middle => (row.text_x - width / 2, row.text_x + width / 2),
                Anchor::End => (row.text_x - width, row.text_x),
            };
            assert!(left > TIMES && right < WIDTH, "{row:?}");
        }
        assert!(layout.bottom > free);
    }

    #[test]
    fn only_long_waits_break_the_axis() {
        let history = history();
        let breaks: Vec<_> = Layout::of(&history).rows.iter().map(|row| row.pause_y.is_some()).collect();
        assert_eq!(breaks, [false, false, true, true]);
    }

    #[test]
    fn a_moment_between_two_events_is_between_them() {
        let history = history();
        let layout = Layout::of(&history);
        let [from, at, to] = [10, 150_000, 300_000].map(|time| layout.y_at(time));
        assert!(from < at && at < to, "{from} {at} {to}");
        assert_eq!(layout.y_at(u64::MAX), layout.bottom);
    }
}
