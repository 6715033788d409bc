//! `leasehold redlock move`: moves the nodes of one deployment to another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use leasehold::backend::node::{Ask, BlockingQuorumNode, Membership, QuorumNode, Told, View};
use leasehold::redlock::blocking::nodes;
use leasehold::redlock::{Purpose, RedlockConfig, Report};

use super::args::MoveArgs;
use crate::durations::whole_seconds_up;
use crate::exit::{Exit, Failure};
use crate::quorum::{Health, PASS_WITHIN, Quorum, config, failure};
use crate::report::{print, say_warning};

/// Moves the old nodes that are reachable, and starts the new deployment's wait.
pub(super) fn run(args: &MoveArgs) -> Result<Exit, Failure> {
    let (old, new) = (config(&args.old)?, config(&args.new)?);
    let (from, to) = (membership(&old), Arc::new(membership(&new)));
    if from == *to {
        return Err(Failure::new(
            Exit::Usage,
            "both URLs name the same deployment; give the old one, then the new one",
        ));
    }
    let standing = check_newcomers(&from, &new, &to)?;
    let moved = move_old(&old, &from, &to);
    // Otherwise the new nodes decide whether to go on, whatever the old ones have lost since.
    if standing == Standing::Begins {
        moved?;
    }
    let quorum = Quorum::open(&new)?;
    let report = quorum.pass(Purpose::TakeOver(Arc::new(from)))?;
    for warning in report.warnings() {
        say_warning(&warning);
    }
    report.check_reached()?;
    if report.unfinished_move.is_some() {
        let message = format!(
            "no deployment can grant locks until more of the nodes that both URLs name are moved; run this command again when \
             they can be reached; if they have lost their data: {}",
            Report::LAST_RESORT
        );
        return Err(Failure::new(Exit::Unavailable, message));
    }
    print(&told(&new, Health::of(&report)))
}

/// Moves the nodes of the old deployment.
fn move_old(old: &RedlockConfig, from: &Membership, to: &Arc<Membership>) -> Result<(), Failure> {
    let moved = Quorum::open(old)?.pass(Purpose::Move(Arc::clone(to)));
    check_rivals(old, from, to)?;
    check_moved(&moved?, from, to)
}

/// How far the move has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Begins,
    /// A new node has followed it, which is the last step.
    Repeated,
}

fn membership(config: &RedlockConfig) -> Membership {
    let members = config.nodes().iter().map(|node| node.address().to_owned()).collect();
    Membership::new(members, config.max_ttl().get())
}

/// A new node must be reachable and belong to no other deployment: a move cannot be undone.
fn check_newcomers(from: &Membership, new: &RedlockConfig, to: &Membership) -> Result<Standing, Failure> {
    let mut standing = Standing::Begins;
    let is_new = |address: &str| !from.members.iter().any(|member| member == address);
    for node in nodes(new).map_err(failure)?.iter().filter(|node| is_new(node.address())) {
        let Told::View(view) = node.ask(&Ask::Look, PASS_WITHIN)? else { continue };
        let known = view.membership.as_ref();
        if known.is_some_and(|known| known != from && known != to) {
            let message =
                format!("{} belongs to another deployment; nothing was changed; use a separate server", node.address());
            return Err(Failure::new(Exit::Config, message));
        }
        if known == Some(to) && view.predecessor.as_ref() == Some(from) {
            standing = Standing::Repeated;
        }
    }
    Ok(standing)
}

/// Another move may have been in progress from the same deployment. The one that has a majority of the old nodes gets the others,
/// too.
fn check_rivals(old: &RedlockConfig, from: &Membership, to: &Membership) -> Result<(), Failure> {
    let looked = nodes(old).map_err(failure)?;
    let looks = looked.iter().filter_map(|node| Some((node.address(), node.ask(&Ask::Look, PASS_WITHIN).ok()?)));
    let mut rivals: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let (mut ours, mut forgot) = (BTreeSet::new(), BTreeSet::new());
    for (address, told) in looks {
        let Told::View(view) = told else { continue };
        match &view.membership {
            Some(theirs) if theirs == to => _ = ours.insert(address),
            Some(theirs) if theirs != from && view.predecessor.as_ref() == Some(from) => {
                _ = rivals.entry(described(theirs)).or_default().insert(address);
            }
            // With a rival, nobody can tell whether it was moved before it forgot.
            Some(_) | None if !view.votes() => _ = forgot.insert(address),
            Some(_) | None => {}
        }
    }
    if from.is_left_by(|member| ours.contains(member)) {
        return Ok(());
    }
    let all: Vec<_> = rivals.values().chain([&ours]).collect();
    // Whether the list that these nodes follow may still get enough.
    let may_win = |list: &BTreeSet<&str>| {
        let others: BTreeSet<_> =
            all.iter().filter(|other| **other != list).copied().flatten().chain(&forgot).collect();
        from.is_left_by(|member| list.contains(member) || !others.contains(&member))
    };
    let Some((theirs, addresses)) = rivals.iter().max_by_key(|(_, addresses)| addresses.len()) else { return Ok(()) };
    let chance = if may_win(&ours) {
        Chance::Left
    } else if rivals.values().any(may_win) {
        Chance::Gone
    } else {
        Chance::Nobodys
    };
    let addresses: Vec<_> = addresses.iter().copied().collect();
    Err(outrun(&addresses.join(", "), theirs, chance))
}

/// Whether a move may still get enough of the old nodes.
#[derive(Clone, Copy, Debug)]
enum Chance {
    Left,
    Gone,
    /// No move can, because too many have lost their data, or followed a third one.
    Nobodys,
}

fn outrun(addresses: &str, theirs: &str, chance: Chance) -> Failure {
    let came_first = format!("another move from this deployment came first at {addresses}, to {theirs}");
    match chance {
        Chance::Left => Failure::new(
            Exit::Unavailable,
            format!("{came_first}; run this command again when all other nodes of the old deployment can be reached"),
        ),
        Chance::Gone => Failure::new(
            Exit::Config,
            format!(
                "{came_first}; give clients the URL of that deployment; to have the nodes of this command instead, wait until \
                 it grants locks, and run: \
                 leasehold redlock move URL_OF_THAT_DEPLOYMENT NEW_URL"
            ),
        ),
        Chance::Nobodys => Failure::new(
            Exit::Config,
            format!(
                "{came_first}; no list can get enough of the old nodes any more; if that deployment does not grant locks, {}",
                Report::LAST_RESORT
            ),
        ),
    }
}

fn described(deployment: &Membership) -> String {
    let max_ttl = humantime::format_duration(deployment.max_ttl).to_string().replace(' ', "");
    format!("{} with max_ttl={max_ttl}", deployment.members.join(","))
}

/// Warns of each old node that was not moved.
fn check_moved(report: &Report, from: &Membership, to: &Membership) -> Result<(), Failure> {
    let is_moved = |view: &View| view.membership.as_ref() == Some(to);
    let (moved, left): (Vec<_>, Vec<_>) = report.nodes.iter().partition(|node| node.view.as_ref().is_ok_and(is_moved));
    let is_decided = |kept: &[String]| {
        from.is_left_by(|member| {
            kept.iter().any(|kept| kept == member) && moved.iter().any(|node| node.address == member)
        })
    };
    for node in left {
        let how = if to.members.contains(&node.address) && is_decided(&to.members) {
            "the next client with the new URL that reaches it moves it; if it missed an earlier move as well, run `leasehold redlock \
             move ITS_URL NEW_URL` then, with the URL of the list that it is still in"
        } else {
            "run this command again when it is reachable, or shut it down for good"
        };
        say_warning(&format!("{} was not moved; {how}", node.address));
    }
    // Without this many nodes, the old deployment has no majority.
    if !is_decided(&from.members) {
        let message =
            "too few of the old nodes were moved, so the old deployment may still grant locks; run this command again";
        return Err(Failure::new(Exit::Unavailable, message));
    }
    Ok(())
}

fn told(new: &RedlockConfig, health: Health) -> String {
    if health.can_grant() {
        return format!("already moved; the new deployment can grant locks: {health}");
    }
    let wait = whole_seconds_up(health.wait.unwrap_or(Duration::from_secs(0)).max(Duration::from_secs(1)));
    format!(
        "moved: the old nodes refuse clients with the old URL. The new deployment has {} nodes and grants its first lock in \
         {wait} at most, once all leases of the old one have expired.\n\
         Give every client the new URL. To see its progress, run: leasehold redlock status NEW_URL",
        new.nodes().len()
    )
}
