//! `leasehold redlock move`: moves the nodes of one deployment to another.

use std::sync::Arc;
use std::time::Duration;

use leasehold::redlock::blocking::nodes;
use leasehold::redlock::{Purpose, RedlockConfig, Report};
use lock_core::node::{Ask, BlockingQuorumNode, Membership, QuorumNode, Told, View};

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
    check_newcomers(&from, &new, &to)?;
    let moved = Quorum::open(&old)?.pass(Purpose::Move(Arc::clone(&to)))?;
    check_moved(&moved, &to)?;
    let quorum = Quorum::open(&new)?;
    let report = quorum.pass(Purpose::TakeOver(Arc::new(from)))?;
    for warning in report.warnings() {
        say_warning(&warning);
    }
    report.check_reached()?;
    print(&told(&new, Health::of(&report)))
}

fn membership(config: &RedlockConfig) -> Membership {
    let members = config.nodes().iter().map(|node| node.address().to_owned()).collect();
    Membership::new(members, config.max_ttl().get())
}

/// A new node must be reachable and belong to no other deployment: a move cannot be undone.
fn check_newcomers(from: &Membership, new: &RedlockConfig, to: &Membership) -> Result<(), Failure> {
    let is_new = |address: &str| !from.members.iter().any(|member| member == address);
    for node in nodes(new).map_err(failure)?.iter().filter(|node| is_new(node.address())) {
        let Told::View(view) = node.ask(&Ask::Look, PASS_WITHIN)? else { continue };
        let known = view.membership.as_ref();
        if known.is_some_and(|known| known != from && known != to) {
            let message =
                format!("{} belongs to another deployment; nothing was changed; use a separate server", node.address());
            return Err(Failure::new(Exit::Config, message));
        }
    }
    Ok(())
}

/// Warns of each old node that was not moved.
fn check_moved(report: &Report, to: &Membership) -> Result<(), Failure> {
    let is_moved = |view: &View| view.membership.as_ref() == Some(to);
    let (moved, left): (Vec<_>, Vec<_>) = report.nodes.iter().partition(|node| node.view.as_ref().is_ok_and(is_moved));
    for node in left {
        let how = if to.members.contains(&node.address) {
            "the next client with the new URL that reaches it moves it"
        } else {
            "run this command again when it is reachable, or shut it down for good"
        };
        say_warning(&format!("{} was not moved; {how}", node.address));
    }
    // Without this many nodes, the old deployment has no majority.
    if moved.len() < report.nodes.len() - report.majority + 1 {
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
