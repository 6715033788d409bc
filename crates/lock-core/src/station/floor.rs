//! The highest token that was handed out: whatever is granted later has to be above it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Counter, FencingToken};

/// The highest token that a client was handed, over all its stations. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Floor(Arc<AtomicU64>);

impl Floor {
    fn get(&self) -> Option<FencingToken> {
        FencingToken::new(self.0.load(Ordering::Relaxed)).ok()
    }

    // A value of any age was drawn before it is read, which is all that counts.
    fn raise(&self, token: FencingToken) {
        self.0.fetch_max(token.get(), Ordering::Relaxed);
    }
}

/// The floors that a station compares with.
#[derive(Debug, Default)]
pub(super) struct Floors {
    /// At this station.
    here: Option<FencingToken>,
    /// At all stations of the client, where their tokens come from one counter.
    everywhere: Option<Floor>,
}

impl Floors {
    pub(super) fn sharing(&mut self, floor: &Floor, counter: Counter) {
        self.everywhere = match counter {
            Counter::Shared => Some(floor.clone()),
            Counter::PerName => None,
        };
    }

    /// A grant to an owner that has not asked yet must be above this.
    pub(super) fn get(&self) -> Option<FencingToken> {
        self.here.max(self.everywhere.as_ref().and_then(Floor::get))
    }

    /// The highest token that a turn here began with.
    pub(super) fn here(&self) -> Option<FencingToken> {
        self.here
    }

    /// A turn here begins with this token.
    pub(super) fn raise(&mut self, token: FencingToken) {
        assert!(self.here.is_none_or(|floor| floor < token), "tokens rise");
        self.raise_to(token);
    }

    /// A turn here begins with this token, or with a lower one.
    pub(super) fn raise_to(&mut self, token: FencingToken) {
        self.here = self.here.max(Some(token));
        if let Some(everywhere) = &self.everywhere {
            everywhere.raise(token);
        }
    }
}
