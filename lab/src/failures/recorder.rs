//! Records a scene while it is played.

use std::time::Duration;

use leasehold::FencingToken;
use leasehold::clock::{Clock, HostClock, Moment};

use super::history::{Bar, Event, Kind, Lane, Place, Tone};
use crate::shared::failure::{Exit, Failure};

/// Records what happens, with the time of the run's own monotonic clock.
#[derive(Debug)]
pub(crate) struct Recorder {
    began: Moment,
    lanes: Vec<&'static str>,
    events: Vec<Event>,
    bars: Vec<Bar>,
    /// Which of `bars` have not ended.
    open: Vec<usize>,
    tokens: Vec<FencingToken>,
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) lanes: Vec<&'static str>,
    pub(crate) events: Vec<Event>,
    pub(crate) bars: Vec<Bar>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let began = HostClock.now();
        Self { began, lanes: Vec::new(), events: Vec::new(), bars: Vec::new(), open: Vec::new(), tokens: Vec::new() }
    }

    /// Names the lanes, from left to right, once.
    pub(crate) fn lanes<const N: usize>(&mut self, names: [&'static str; N]) -> [Lane; N] {
        self.lanes = names.to_vec();
        std::array::from_fn(Lane)
    }

    /// A message arrived.
    pub(crate) fn message(&mut self, from: Lane, to: Lane, text: impl Into<String>, tone: Tone) {
        self.event(Place::Message { from, to }, text.into(), tone);
    }

    /// A message arrived, and was refused.
    pub(crate) fn refused(&mut self, from: Lane, to: Lane, text: impl Into<String>, tone: Tone) {
        self.event(Place::Refused { from, to }, text.into(), tone);
    }

    /// A message was lost.
    pub(crate) fn lost(&mut self, from: Lane, to: Lane, text: impl Into<String>) {
        self.event(Place::Lost { from, to }, text.into(), Tone::Fault);
    }

    /// Something happened on one lane.
    pub(crate) fn note(&mut self, lane: Lane, text: impl Into<String>, tone: Tone) {
        self.event(Place::Note(lane), text.into(), tone);
    }

    /// Changes what the last event means, once its consequence is known.
    pub(crate) fn judge_last(&mut self, tone: Tone) {
        if let Some(event) = self.events.last_mut() {
            event.tone = tone;
        }
    }

    /// The last event begins something, which lasts until [`end`](Self::end), or to the end of the recording.
    pub(crate) fn begin(&mut self, lane: Lane, kind: Kind) {
        let from_us = self.last();
        self.open.push(self.bars.len());
        self.bars.push(Bar { lane, kind, from_us, to_us: from_us });
    }

    /// The last event ends what began with the same arguments, if it has not ended.
    pub(crate) fn end(&mut self, lane: Lane, kind: Kind) {
        self.end_at(lane, kind, self.last());
    }

    /// With the last event, the store has the lock for a client, which may rely on it.
    pub(crate) fn granted(&mut self, store: Lane, client: Lane) {
        self.begin(store, Kind::Stored(client));
        self.begin(client, Kind::Valid);
    }

    /// With the last event, a client that may rely on the lock loses it, and does not know.
    pub(crate) fn deceives(&mut self, lane: Lane) {
        self.end(lane, Kind::Valid);
        self.begin(lane, Kind::Believed);
    }

    /// A client that may rely on the lock is suspended.
    pub(crate) fn suspends(&mut self, lane: Lane) {
        self.note(lane, "is suspended", Tone::Fault);
        self.begin(lane, Kind::Paused);
    }

    /// It resumes without the lock, and does not know.
    pub(crate) fn resumes_deceived(&mut self, lane: Lane) {
        self.note(lane, "resumes, and believes that it holds the lock", Tone::Fault);
        self.end(lane, Kind::Paused);
        self.begin(lane, Kind::Believed);
    }

    /// What began with the same arguments ends this much later than now.
    pub(crate) fn ends_in(&mut self, lane: Lane, kind: Kind, time: Duration) {
        let at = self.now().saturating_add(micros(time));
        self.end_at(lane, kind, at);
    }

    /// The short name of a token. Tokens are numbered from 1 in the order of their values, in which they must appear.
    pub(crate) fn token(&mut self, token: FencingToken) -> Result<String, Failure> {
        if let Some(position) = self.tokens.iter().position(|known| *known == token) {
            return Ok(format!("T{}", position + 1));
        }
        if let Some(last) = self.tokens.last().filter(|last| **last > token) {
            return Err(Failure::new(Exit::Broken, format!("a later token is lower: {token} after {last}")));
        }
        self.tokens.push(token);
        Ok(format!("T{}", self.tokens.len()))
    }

    /// Ends what has not ended. Times count from the first event.
    pub(crate) fn finish(mut self) -> Recorded {
        let (now, began) = (self.now(), self.events.first().map_or(0, |event| event.at_us));
        for index in self.open {
            if let Some(bar) = self.bars.get_mut(index) {
                bar.to_us = now;
            }
        }
        for bar in &mut self.bars {
            bar.from_us = bar.from_us.saturating_sub(began);
            bar.to_us = bar.to_us.min(now).saturating_sub(began);
        }
        for event in &mut self.events {
            event.at_us -= began;
        }
        Recorded { lanes: self.lanes, events: self.events, bars: self.bars }
    }

    fn end_at(&mut self, lane: Lane, kind: Kind, at: u64) {
        let bars = &mut self.bars;
        self.open.retain(|index| {
            let Some(bar) = bars.get_mut(*index).filter(|bar| bar.lane == lane && bar.kind == kind) else {
                return true;
            };
            bar.to_us = at;
            false
        });
    }

    fn event(&mut self, place: Place, text: String, tone: Tone) {
        self.events.push(Event { at_us: self.now(), place, text, tone });
    }

    /// When the last event was.
    fn last(&self) -> u64 {
        self.events.last().map_or(0, |event| event.at_us)
    }

    fn now(&self) -> u64 {
        micros(HostClock.now().since(self.began))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_and_end_with_events_or_with_the_recording() {
        let mut story = Recorder::new();
        let [a, store] = story.lanes(["A", "Redis"]);
        std::thread::sleep(Duration::from_millis(2));
        story.note(a, "one", Tone::Plain);
        story.begin(a, Kind::Paused);
        story.begin(store, Kind::Stored(a));
        story.begin(a, Kind::Valid);
        story.ends_in(a, Kind::Valid, Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
        story.note(a, "two", Tone::Plain);
        story.end(a, Kind::Paused);
        std::thread::sleep(Duration::from_millis(2));
        let Recorded { bars, events, .. } = story.finish();
        let [paused, stored, valid] = bars.as_slice() else { panic!("{bars:?}") };
        assert_eq!((paused.from_us, events[0].at_us, stored.from_us), (0, 0, 0));
        assert_eq!(paused.to_us, events[1].at_us);
        assert!(paused.to_us >= 2000 && stored.to_us >= paused.to_us + 2000, "{bars:?}");
        assert_eq!(valid.to_us, stored.to_us);
    }

    #[test]
    fn tokens_have_short_names_in_the_order_of_their_values() {
        let token = |value| FencingToken::new(value).unwrap();
        let mut story = Recorder::new();
        let names = [70, 90, 70].map(|value| story.token(token(value)).unwrap());
        assert_eq!(names, ["T1", "T2", "T1"]);
        assert!(story.token(token(80)).is_err());
    }
}
