//! A scene: one failure, played without the protection and with it.

use super::history::{Ended, History, Variant};
use super::recorder::{Recorded, Recorder};
use crate::shared::failure::Failure;

/// Plays one variant over real servers, and says what was seen.
pub(crate) type Play = fn(&mut Recorder) -> Result<Ended, Failure>;

/// How often a scene is played until it takes its course.
const TRIES: u32 = 3;

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
        let (Recorded { lanes, events, bars }, ended) = record(play, TRIES)?;
        Ok(History { scene: self.name, title: self.title, variant, lock, lanes, events, bars, ended })
    }
}

/// On a machine that is too slow for the leases of a scene, it takes another course: then it is played again.
fn record(play: Play, tries: u32) -> Result<(Recorded, Ended), Failure> {
    let mut story = Recorder::new();
    match play(&mut story) {
        Ok(ended) => Ok((story.finish(), ended)),
        Err(_) if tries > 1 => record(play, tries - 1),
        Err(failure) => Err(failure),
    }
}
