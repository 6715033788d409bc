//! The serialized form of inspection, for instance as JSON: with the field names of `leasehold ls --json`, and times in
//! milliseconds.

use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::watch::{Change, Happened};
use super::{Cursor, Entry, Held, Page, Revoked, Waiter};
use crate::{Holder, Limit, Mode, Note};

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Writes who holds or waits. One that is not of this library has no process, host or reason.
fn who<S: SerializeStruct>(fields: &mut S, note: Option<&Note>) -> Result<(), S::Error> {
    fields.serialize_field("leasehold", &note.is_some())?;
    fields.serialize_field("pid", &note.and_then(Note::pid))?;
    fields.serialize_field("host", &note.map(Note::host))?;
    fields.serialize_field("why", &note.map(Note::why))
}

/// Writes the fields of a holder. A holder that is not of this library has no token.
fn holder<S: SerializeStruct>(fields: &mut S, holder: &Holder) -> Result<(), S::Error> {
    let note = match holder {
        Holder::Leasehold { note, .. } => Some(note),
        Holder::Foreign => None,
    };
    who(fields, note)?;
    fields.serialize_field("token", &holder.tokens().map(|tokens| tokens.high().get()))
}

impl Serialize for Holder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Holder", 5)?;
        holder(&mut fields, self)?;
        fields.end()
    }
}

impl Serialize for Held {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Held", 9)?;
        holder(&mut fields, &self.holder)?;
        fields.serialize_field("mode", &self.mode.kind())?;
        fields.serialize_field("slots", self.slots.get())?;
        fields.serialize_field("held_ms", &self.age.map(millis))?;
        fields.serialize_field("remaining_ms", &self.remaining.map(millis))?;
        fields.end()
    }
}

impl Serialize for Waiter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Waiter", 7)?;
        who(&mut fields, self.note.as_ref())?;
        fields.serialize_field("mode", &self.mode.kind())?;
        // 0 of a lock.
        fields.serialize_field("permits", &self.mode.count())?;
        fields.serialize_field("waiting_ms", &self.age.map(millis))?;
        fields.end()
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let last = self.holders.first();
        let mode = last.map(|held| held.mode);
        let mut fields = serializer.serialize_struct("Entry", 15)?;
        fields.serialize_field("name", &self.name)?;
        holder(&mut fields, &self.holder)?;
        fields.serialize_field("held_ms", &last.and_then(|held| held.age).map(millis))?;
        fields.serialize_field("remaining_ms", &self.remaining.map(millis))?;
        fields.serialize_field("waiters", &self.waiters)?;
        fields.serialize_field("kind", &mode.map(Mode::name_kind))?;
        fields.serialize_field("limit", &mode.and_then(Mode::limit).map(Limit::get))?;
        fields.serialize_field("leases", &self.leases)?;
        fields.serialize_field("holders", &self.holders)?;
        fields.serialize_field("queue", &self.queue)?;
        match &self.votes {
            Some(votes) => fields.serialize_field("votes", votes)?,
            None => fields.skip_field("votes")?,
        }
        fields.end()
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for Page {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Page", 2)?;
        fields.serialize_field("entries", &self.entries)?;
        fields.serialize_field("next", &self.next)?;
        fields.end()
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (by, joined, wanted) = match &self.happened {
            Happened::Revoked(_, by) => (Some(by.to_string()), None, None),
            Happened::Queued { more, wanted } => (None, Some(*more), wanted.map(Mode::kind)),
            Happened::Acquired(_) | Happened::Released(_) | Happened::Expired(_) | Happened::Ended(_) => {
                (None, None, None)
            }
        };
        let mut fields = serializer.serialize_struct("Change", 7)?;
        fields.serialize_field("event", self.happened.word())?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("lease", &self.happened.lease())?;
        fields.serialize_field("by", &by)?;
        fields.serialize_field("joined", &joined)?;
        fields.serialize_field("wanted", &wanted)?;
        fields.serialize_field("waiters", &self.waiters)?;
        fields.end()
    }
}

impl Serialize for Revoked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Revoked => "revoked",
            Self::NotHeld => "not-held",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Slots, TokenRange, Width};

    #[test]
    fn an_entry_is_written_as_the_command_writes_it() {
        let tokens = TokenRange::above(6, Width::ONE).unwrap();
        let holder = Holder::Leasehold { tokens, note: Note::new("web-3", 4711, "nightly").unwrap() };
        let mode = Mode::permits(1, 4).unwrap();
        let (age, remaining) = (Some(Duration::from_secs(2)), Some(Duration::from_millis(1500)));
        let held = Held { holder: holder.clone(), mode, slots: Slots::NONE, age, remaining };
        let name = "job:7".parse().unwrap();
        let waiter =
            Waiter { note: Some(Note::new("web-4", 99, "report").unwrap()), mode: Mode::permits(2, 4).unwrap(), age };
        let foreign = Waiter { note: None, mode: Mode::Shared, age: None };
        let queue = vec![waiter, foreign];
        let entry =
            Entry { name, holder, remaining, leases: 1, holders: vec![held.clone()], waiters: 2, queue, votes: None };
        let written = serde_json::to_value(Page { entries: vec![entry], next: None }).unwrap();
        let expected = serde_json::json!({
            "entries": [{
                "name": "job:7", "leasehold": true, "pid": 4711, "host": "web-3", "why": "nightly", "token": 7,
                "held_ms": 2000, "remaining_ms": 1500, "waiters": 2, "kind": "semaphore", "limit": 4, "leases": 1,
                "holders": [{
                    "leasehold": true, "pid": 4711, "host": "web-3", "why": "nightly", "token": 7,
                    "mode": "permits", "slots": [], "held_ms": 2000, "remaining_ms": 1500,
                }],
                "queue": [{
                    "leasehold": true, "pid": 99, "host": "web-4", "why": "report",
                    "mode": "permits", "permits": 2, "waiting_ms": 2000,
                }, {
                    "leasehold": false, "pid": null, "host": null, "why": null,
                    "mode": "shared", "permits": 0, "waiting_ms": null,
                }],
            }],
            "next": null,
        });
        assert_eq!(written, expected);
        let happened = Happened::Revoked(held, Note::new("web-4", 12, "it hangs").unwrap());
        let change = serde_json::to_value(Change { name: "job:7".parse().unwrap(), happened, waiters: 1 }).unwrap();
        assert_eq!((&change["event"], &change["lease"]["token"]), (&"broken".into(), &7.into()));
        assert_eq!(
            (&change["by"], &change["joined"]),
            (&"pid 12 on web-4 (it hangs)".into(), &serde_json::Value::Null)
        );
        let happened = Happened::Queued { more: 2, wanted: Some(Mode::Shared) };
        let change = serde_json::to_value(Change { name: "job:7".parse().unwrap(), happened, waiters: 3 }).unwrap();
        let expected = serde_json::json!({
            "event": "queued", "name": "job:7", "lease": null, "by": null, "joined": 2, "wanted": "shared", "waiters": 3,
        });
        assert_eq!(change, expected);
        assert_eq!(serde_json::to_value(Holder::Foreign).unwrap()["leasehold"], false);
        assert_eq!(serde_json::to_value(Revoked::NotHeld).unwrap(), "not-held");
    }
}
