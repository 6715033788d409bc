//! A listing, page by page. Nodes keep their names in different orders and have different ones, so each has a cursor of its own.
//!
//! A page asks each node for its next names, and then all nodes who holds these locks. A lock is listed on each page on which a node names
//! it: which of its nodes comes first may change meanwhile, so none can leave it to another. Every lock that is held throughout is found: any
//! majority has a node in common with the nodes that are listed, and these are the same from the first page to the last.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::inspect::{Cursor, Page, Query};
use lock_core::node::{Inspection, Told};
use lock_core::{BackendError, Effect, ErrorKind, Holder, LockName, Operation};

use super::votes::{entry, show};
use crate::BACKEND;
use crate::quorum::{Answers, NodeId};

/// A page of a listing.
#[derive(Debug)]
pub(crate) struct Listing {
    query: Query,
    /// How far each node is.
    places: Vec<Place>,
    /// The names that were found.
    found: BTreeSet<LockName>,
}

/// How far a listing of one node is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Begins,
    At(Cursor),
    Ended,
    /// It did not answer at first, and is not listed.
    LeftOut,
}

/// Begins the place of a node in the text of a cursor. No name contains it, and no number.
const BETWEEN: char = '\n';

impl Listing {
    /// The page of this query at so many nodes.
    pub(crate) fn begin(nodes: usize, query: &Query) -> Result<Self, BackendError> {
        let places = match &query.cursor {
            None => vec![Place::Begins; nodes],
            Some(Cursor(text)) => text.split(BETWEEN).map(read).collect::<Option<_>>().unwrap_or_default(),
        };
        if places.len() != nodes {
            let told = "this cursor is not from a listing of these nodes";
            return Err(BackendError::new(BACKEND, Operation::Inspect, ErrorKind::Unsupported, Effect::None, told));
        }
        Ok(Self { query: query.clone(), places, found: BTreeSet::new() })
    }

    /// What to ask each node.
    pub(crate) fn asks(&self) -> Vec<Option<Inspection>> {
        let ask = |place: &Place| {
            let cursor = match place {
                Place::Begins => None,
                Place::At(cursor) => Some(cursor.clone()),
                Place::Ended | Place::LeftOut => return None,
            };
            let mut query = self.query.clone();
            query.cursor = cursor;
            Some(Inspection::List(query))
        };
        self.places.iter().map(ask).collect()
    }

    /// Takes the names. Returns what to ask all nodes about them; `None` if there are none.
    pub(crate) fn find(&mut self, answers: Answers) -> Result<Option<Inspection>, BackendError> {
        let answers = if self.query.cursor.is_none() { answers.of_majority()? } else { answers };
        let mut told: BTreeMap<_, _> = answers.told().collect();
        for (index, place) in self.places.iter_mut().enumerate() {
            *place = match (&*place, told.remove(&NodeId(index))) {
                (Place::Begins | Place::At(_), Some(Told::Listed { names, next })) => {
                    self.found.extend(names.iter().cloned());
                    next.clone().map_or(Place::Ended, Place::At)
                }
                (Place::Begins, _) => Place::LeftOut,
                // It may be the only one of its majority that is listed.
                (Place::At(_), _) => {
                    return Err(answers.error(Effect::None, "a node ended during the listing; list again"));
                }
                (place, _) => place.clone(),
            };
        }
        Ok((!self.found.is_empty()).then(|| show(self.found.iter().cloned())))
    }

    /// The page without entries, if no names were found.
    pub(crate) fn empty(&self) -> Page {
        Page { entries: Vec::new(), next: self.next() }
    }

    /// The page, once all nodes were asked.
    pub(crate) fn page(self, answers: &Answers) -> Page {
        let entries = self.found.iter().enumerate().filter_map(|(position, name)| entry(answers, name, position));
        // Whether another string is a lock is unknown.
        let entries = entries.filter(|entry| entry.holder != Holder::Foreign).collect();
        Page { entries, next: self.next() }
    }

    /// Where to continue; `None` at the end.
    fn next(&self) -> Option<Cursor> {
        let goes_on = self.places.iter().any(|place| matches!(place, Place::At(_)));
        goes_on.then(|| Cursor(self.places.iter().map(written).collect::<Vec<_>>().join(&BETWEEN.to_string())))
    }
}

fn written(place: &Place) -> String {
    match place {
        Place::At(Cursor(cursor)) => format!("+{cursor}"),
        Place::Ended => "-".to_owned(),
        Place::Begins | Place::LeftOut => "!".to_owned(),
    }
}

fn read(text: &str) -> Option<Place> {
    match text {
        "-" => Some(Place::Ended),
        "!" => Some(Place::LeftOut),
        _ => Some(Place::At(Cursor(text.strip_prefix('+')?.to_owned()))),
    }
}
