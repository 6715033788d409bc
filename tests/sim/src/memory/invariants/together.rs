//! Who may hold together, in each holder's own view: one writer, any readers, or as many permits as there are, each with
//! slots of its own.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{LockName, Mode};

use crate::invariants::{Holding, Rule};

pub(crate) fn check(holdings: &[Holding<'_>]) -> Result<(), (Rule, String)> {
    let mut by_name: BTreeMap<&LockName, Vec<&Holding<'_>>> = BTreeMap::new();
    for holding in holdings {
        by_name.entry(&holding.hold.lease().name).or_default().push(holding);
    }
    by_name.values().try_for_each(|holders| {
        one_kind(holders)?;
        limit(holders)?;
        slots(holders)
    })
}

fn one_kind(holders: &[&Holding<'_>]) -> Result<(), (Rule, String)> {
    let suits = |one: &Holding<'_>, other: &Holding<'_>| match (mode(one), mode(other)) {
        (Mode::Permits { .. }, Mode::Permits { .. }) => mode(one).suits(mode(other)),
        _ => one.reads && other.reads,
    };
    let Some((first, others)) = holders.split_first() else { return Ok(()) };
    match others.iter().find(|other| !suits(first, other)) {
        Some(other) => Err((Rule::OneHolder, format!("two hold: {:?} and {:?}", first.hold, other.hold))),
        None => Ok(()),
    }
}

fn limit(holders: &[&Holding<'_>]) -> Result<(), (Rule, String)> {
    let taken: usize = holders.iter().map(|holder| holder.slots.len()).sum();
    match holders.first().map(|first| mode(first)) {
        Some(Mode::Permits { limit, .. }) if taken > usize::try_from(limit.get()).unwrap_or(usize::MAX) => {
            Err((Rule::Limit, format!("{taken} permits of {limit} are held: {holders:?}")))
        }
        Some(_) | None => Ok(()),
    }
}

fn slots(holders: &[&Holding<'_>]) -> Result<(), (Rule, String)> {
    let mut used = BTreeSet::new();
    match holders.iter().flat_map(|holder| holder.slots).find(|slot| !used.insert(**slot)) {
        Some(slot) => Err((Rule::Slots, format!("two use slot {slot}: {holders:?}"))),
        None => Ok(()),
    }
}

fn mode(holding: &Holding<'_>) -> Mode {
    holding.hold.lease().terms.mode
}
