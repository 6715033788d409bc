//! Who may hold together, in each holder's own view: one writer, any readers, or as many permits as there are, each with
//! slots of its own.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{LockName, Mode};

use crate::clock::Time;
use crate::invariants::{Epoch, Holding, Rule, Watch};

/// A holder of the plain layout, and when it thinks that its hold ends.
#[derive(Clone, Debug)]
pub(crate) struct Outsider {
    pub(crate) name: LockName,
    pub(crate) value: u64,
    pub(crate) until: Time,
    pub(crate) epoch: Epoch,
}

/// Holders of one memory of the store respect each other. If it lost data, there can be others: no more is guaranteed.
pub(crate) fn check(
    watch: &Watch,
    holdings: &[Holding<'_>],
    outsider: Option<&Outsider>,
) -> Result<(), (Rule, String)> {
    let mut by_name: BTreeMap<(&LockName, Epoch), Vec<&Holding<'_>>> = BTreeMap::new();
    for holding in holdings {
        let lease = holding.hold.lease();
        if let Some(epoch) = watch.epoch_of(lease) {
            by_name.entry((&lease.name, epoch)).or_default().push(holding);
        }
    }
    by_name.iter().try_for_each(|((name, epoch), holders)| {
        if let Some(outsider) = outsider.filter(|outsider| outsider.name == **name && outsider.epoch == *epoch) {
            return Err((Rule::OneHolder, format!("{holders:?} hold beside {outsider:?}")));
        }
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
