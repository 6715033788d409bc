//! A recorded history: what happened on which lane, and when. Times are microseconds since the recording began.

use std::collections::BTreeSet;

use serde::Serialize;

/// A client, a server or a resource: a column of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Lane(pub(crate) usize);

/// A scene is played in two variants: without the protection, and with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Variant {
    Without,
    With,
}

impl Variant {
    /// The word in file names and in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Without => "without",
            Self::With => "with",
        }
    }
}

/// How a scene ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    /// A sentence that names the violation.
    Violation(String),
    /// A sentence that names the protection.
    Prevented(String),
}

impl Ended {
    /// A violation.
    pub(crate) fn violation(what: impl Into<String>) -> Self {
        Self::Violation(what.into())
    }

    /// No violation, and what prevented it.
    pub(crate) fn prevented(how: impl Into<String>) -> Self {
        Self::Prevented(how.into())
    }

    /// A sentence with its verdict.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Violation(what) => format!("Violation: {what}"),
            Self::Prevented(how) => format!("Prevented: {how}"),
        }
    }

    pub(crate) fn tone(&self) -> Tone {
        match self {
            Self::Violation(_) => Tone::Wrong,
            Self::Prevented(_) => Tone::Guarded,
        }
    }
}

/// What an event means for the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    /// The usual course.
    Plain,
    /// The fault that the scene plays.
    Fault,
    /// What should not have happened.
    Wrong,
    /// What the protection did.
    Guarded,
}

/// Something that happened at one moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Event {
    pub(crate) at_us: u64,
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// Where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// A message that arrived.
    Message { from: Lane, to: Lane },
    /// A message that arrived, and was refused.
    Refused { from: Lane, to: Lane },
    /// A message that never arrived.
    Lost { from: Lane, to: Lane },
    /// On one lane.
    Note(Lane),
}

/// Something that lasted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bar {
    pub(crate) lane: Lane,
    pub(crate) kind: Kind,
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
}

/// What lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The store has the lock for this client.
    Stored(Lane),
    /// The client may rely on the lock.
    Valid,
    /// The client acts as the holder, although it has lost the lock.
    Believed,
    /// The client or server is suspended.
    Paused,
    /// The client or server is dead.
    Down,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct History {
    pub(crate) scene: &'static str,
    pub(crate) title: &'static str,
    pub(crate) variant: Variant,
    /// What the lock of this variant is, in a few words.
    pub(crate) lock: &'static str,
    /// Why it was played again, if it was: a machine that is too slow for the leases of a scene takes another course.
    pub(crate) discarded: Vec<String>,
    pub(crate) lanes: Vec<&'static str>,
    /// In the order of time.
    pub(crate) events: Vec<Event>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) ended: Ended,
}

impl History {
    /// The name of a lane.
    pub(crate) fn name(&self, lane: Lane) -> &'static str {
        self.lanes.get(lane.0).copied().unwrap_or_default()
    }

    /// The clients that have the lock at some time, in the order of their lanes.
    pub(crate) fn holders(&self) -> BTreeSet<Lane> {
        let holder = |bar: &Bar| match bar.kind {
            Kind::Stored(holder) => Some(holder),
            Kind::Valid | Kind::Believed => Some(bar.lane),
            Kind::Paused | Kind::Down => None,
        };
        self.bars.iter().filter_map(holder).collect()
    }

    /// The start of the name of the picture's file.
    pub(crate) fn slug(&self) -> String {
        format!("{}-{}", self.scene, self.variant.word())
    }
}
