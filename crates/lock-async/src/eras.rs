//! What a flush waits for: the errands before it.

use std::collections::VecDeque;

use crate::driver::Flushed;

/// Between one flush and the next. A flush waits for the errands of its era and of those before; what follows from them
/// belongs to the next.
#[derive(Clone, Copy)]
pub(crate) struct Era(usize);

/// How many errands of each era are under way.
pub(crate) struct Eras {
    first: Era,
    /// The last one has no flush yet.
    counts: VecDeque<(usize, Option<Flushed>)>,
}

impl Default for Eras {
    fn default() -> Self {
        Self { first: Era(0), counts: VecDeque::from([(0, None)]) }
    }
}

impl Eras {
    /// Another errand is under way.
    pub(crate) fn begin(&mut self) -> Era {
        let last = self.counts.len().saturating_sub(1);
        if let Some((count, _)) = self.counts.get_mut(last) {
            *count += 1;
        }
        Era(self.first.0 + last)
    }

    /// An errand of this era is done.
    pub(crate) fn end(&mut self, era: Era) {
        if let Some((count, _)) = self.counts.get_mut(era.0 - self.first.0) {
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

    /// Answers the flushes that nothing is under way for any more, by dropping them.
    fn answer(&mut self) {
        while let Some((0, Some(_))) = self.counts.front() {
            self.counts.pop_front();
            self.first.0 += 1;
        }
    }
}
