//! A scene: one failure, played without the protection and with it.

use super::history::{Ended, History, Variant};
use super::recorder::{Recorded, Recorder};
use crate::shared::failure::{Exit, Failure};

/// Plays one variant over real servers, and says what was seen.
pub(crate) type Play = fn(&mut Recorder) -> Result<Ended, Failure>;

/// How often a scene is played again at most. On a machine that is too slow for its leases, it takes another course.
const REPLAYS: usize = 2;

/// One failure.
#[derive(Debug)]
pub(crate) struct Scene {
    /// The name on the command line and in file names.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The story in two or three sentences.
    pub(crate) what_happens: &'static str,
    /// What is used without the protection, and with it, in a few words.
    pub(crate) locks: [&'static str; 2],
    pub(crate) without: Play,
    pub(crate) with: Play,
}

impl Scene {
    /// Plays a variant.
    pub(crate) fn play(&self, variant: Variant) -> Result<History, Failure> {
        let [hand, protected] = self.locks;
        let (lock, play) = match variant {
            Variant::Without => (hand, self.without),
            Variant::With => (protected, self.with),
        };
        let (mut story, mut discarded) = (Recorder::new(), Vec::new());
        let ended = loop {
            match play(&mut story) {
                Ok(ended) => break ended,
                Err(failure) if failure.exit == Exit::Broken || discarded.len() == REPLAYS => return Err(failure),
                Err(failure) => discarded.push(failure.message),
            }
            story = Recorder::new();
        };
        let Recorded { lanes, events, bars } = story.finish();
        Ok(History { scene: self.name, title: self.title, variant, lock, discarded, lanes, events, bars, ended })
    }
}
