//! What a flush waits for: the work that was handed over before it.

use std::collections::VecDeque;
use std::sync::mpsc;

use tokio::sync::oneshot;

/// Who waits for a flush.
pub(crate) enum Flushed {
    Task(#[expect(dead_code, reason = "dropping it is the answer")] oneshot::Sender<()>),
    Thread(#[expect(dead_code, reason = "dropping it is the answer")] mpsc::Sender<()>),
}

/// The time between one flush and the next. A flush waits for the work of its generation and of those before; what
/// follows from that work belongs to the next one.
#[derive(Clone, Copy)]
pub(crate) struct Generation(usize);

/// How much work of each generation is under way.
pub(crate) struct Generations {
    first: Generation,
    /// The last one has no flush yet.
    counts: VecDeque<(usize, Option<Flushed>)>,
}

impl Default for Generations {
    fn default() -> Self {
        Self { first: Generation(0), counts: VecDeque::from([(0, None)]) }
    }
}

impl Generations {
    /// More work is under way.
    pub(crate) fn begin(&mut self) -> Generation {
        let last = self.counts.len().saturating_sub(1);
        if let Some((count, _)) = self.counts.get_mut(last) {
            *count += 1;
        }
        Generation(self.first.0 + last)
    }

    /// Work of this generation is done.
    pub(crate) fn end(&mut self, generation: Generation) {
        if let Some((count, _)) = self.counts.get_mut(generation.0 - self.first.0) {
            *count -= 1;
        }
        self.answer();
    }

    /// Answers once everything that is under way now is done.
    pub(crate) fn flush(&mut self, flushed: Flushed) {
        if let Some((_, flush)) = self.counts.back_mut() {
            *flush = Some(flushed);
        }
        self.counts.push_back((0, None));
        self.answer();
    }

    /// Answers, by dropping them, the flushes that have nothing left to wait for.
    fn answer(&mut self) {
        while let Some((0, Some(_))) = self.counts.front() {
            self.counts.pop_front();
            self.first.0 += 1;
        }
    }
}
