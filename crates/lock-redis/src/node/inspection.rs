//! What operators ask a node, as commands. No I/O.

use std::time::Duration;

use lock_core::inspect::{Held, Query, Revoked};
use lock_core::node::{Inspection, OwnerDigest, Revocation, Shown, Told};
use lock_core::{Holder, Mode, Slots};
use redis::Value;

use crate::failure::Failure;
use crate::keys::Key;
use crate::requests::look::Scan;
use crate::requests::revocation::note_of;
use crate::requests::value::Stored;
use crate::script::node as script;
use crate::wire::{Call, Line, Question, read as read_as, remaining, to_millis};

pub(super) fn call(inspection: &Inspection, line: Line<'_>) -> Result<Call, Failure> {
    Ok(match inspection {
        Inspection::List(query) => return scan(query).call(line),
        Inspection::Show(names) => {
            let keys: Vec<_> = names.iter().map(|name| Key::Lock(line.wire.keys(name))).collect();
            Call::script(&script::SHOW, &keys)
        }
        Inspection::Owners(name, token) => {
            let keys = line.wire.keys(name);
            Call::script(&script::OWNERS, &[Key::Lock(keys), Key::RevokedOwners(keys, *token)]).arg(token.get())
        }
        Inspection::Revoke(revocation) => revoke(line, revocation),
        Inspection::RevokedBy(leases) => {
            let mut notes = redis::cmd("MGET");
            leases.iter().for_each(|(name, token)| _ = notes.arg(Key::Revocation(line.wire.keys(name), *token)));
            Call::plain(notes)
        }
    })
}

fn scan(query: &Query) -> Scan<'_> {
    Scan { query, cursor: query.cursor.as_ref() }
}

fn revoke(line: Line<'_>, Revocation { name, token, owners, by, lasts }: &Revocation) -> Call {
    let keys = line.wire.keys(name);
    let call = Call::script(&script::REVOKE, &[Key::Node, Key::Lock(keys)]).arg(Key::Lead(keys)).arg(token.get());
    owners.iter().fold(call.arg(by.to_wire()).arg(to_millis(*lasts)), |call, OwnerDigest(owner)| call.arg(owner))
}

/// Reads the reply to a request.
pub(super) fn read(inspection: &Inspection, line: Line<'_>, reply: Value) -> Result<Told, Failure> {
    match inspection {
        Inspection::List(query) => scan(query).read(line, reply).map(|(names, next)| Told::Listed { names, next }),
        Inspection::Show(_) => {
            let pairs = read_as::<Vec<(Option<Vec<u8>>, i64)>>(reply)?;
            Ok(Told::Shown(pairs.into_iter().map(|(value, pttl)| Some(shown(&value?, remaining(pttl)))).collect()))
        }
        Inspection::Owners(..) => {
            Ok(Told::Owners(read_as::<Vec<String>>(reply)?.into_iter().map(OwnerDigest).collect()))
        }
        Inspection::Revoke(_) => match read_as::<i64>(reply)? {
            0 => Ok(Told::Revoked(Revoked::NotHeld)),
            _ => Ok(Told::Revoked(Revoked::Revoked)),
        },
        Inspection::RevokedBy(_) => {
            let notes = read_as::<Vec<Option<Vec<u8>>>>(reply)?;
            Ok(Told::RevokedBy(notes.into_iter().map(|note| Some(note_of(&note?))).collect()))
        }
    }
}

/// A value of ours has the digest where the owner was; that of something else is the digest.
fn shown(value: &[u8], remaining: Option<Duration>) -> Shown {
    let stored = Stored::read(value);
    let owner = stored.map_or_else(|| String::from_utf8_lossy(value).into_owned(), |stored| stored.owner.to_wire());
    let (holder, age): (Holder, _) = (Stored::holder(value), Stored::age(value));
    let held = Held { holder, mode: Mode::Exclusive, slots: Slots::NONE, age, remaining };
    Shown { owner: OwnerDigest(owner), held }
}
