//! `leasehold redlock move`: the nodes of a deployment become those of another.

use std::sync::Arc;
use std::time::Duration;

use leasehold::redlock::blocking::nodes;
use leasehold::redlock::{Purpose, RedlockConfig, Report};
use lock_core::node::{Ask, BlockingQuorumNode, Membership, QuorumNode, Told};

use super::args::MoveArgs;
use crate::exit::{Exit, Failure};
use crate::quorum::{Health, PASS_WITHIN, Quorum, config, failure};
use crate::report::{print, say_warning, whole_seconds};

/// Moves what can be reached of the old nodes, and sets the new deployment's clock running.
pub(super) fn run(args: &MoveArgs) -> Result<Exit, Failure> {
    let (old, new) = (config(&args.old)?, config(&args.new)?);
    let (from, to) = (membership(&old), Arc::new(membership(&new)));
    if from == *to {
        return Err(Failure::new(
            Exit::Usage,
            "both URLs mean the same deployment; name the old one, then the new one",
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

/// A node that comes in has to be there, and to be nobody else's: afterwards there is no way back to the old ones.
fn check_newcomers(from: &Membership, new: &RedlockConfig, to: &Membership) -> Result<(), Failure> {
    let is_new = |address: &str| !from.members.iter().any(|member| member == address);
    for node in nodes(new).map_err(failure)?.iter().filter(|node| is_new(node.address())) {
        let Told::View(view) = node.ask(&Ask::Look, PASS_WITHIN)? else { continue };
        let known = view.membership.as_ref();
        if known.is_some_and(|known| known != from && known != to) {
            let message = format!(
                "{} belongs to another deployment, and nothing was changed; use a server of its own",
                node.address()
            );
            return Err(Failure::new(Exit::Config, message));
        }
    }
    Ok(())
}

/// Tells of the old nodes that still are what they were.
fn check_moved(report: &Report, to: &Membership) -> Result<(), Failure> {
    let is_moved = |view: &lock_core::node::View| view.membership.as_ref() == Some(to);
    let (moved, left): (Vec<_>, Vec<_>) = report.nodes.iter().partition(|node| node.view.as_ref().is_ok_and(is_moved));
    for node in left {
        let how = if to.members.contains(&node.address) {
            "the next client with the new URL that reaches it does that"
        } else {
            "run the same again when it is there, or stop it for good"
        };
        say_warning(&format!("{} was not moved; {how}", node.address));
    }
    // No majority of the old deployment can do without one of so many.
    if moved.len() < report.nodes.len() - report.majority + 1 {
        let message = "too few of the old nodes were moved, and the old deployment may go on; run the same again";
        return Err(Failure::new(Exit::Unavailable, message));
    }
    Ok(())
}

fn told(new: &RedlockConfig, health: Health) -> String {
    if health.can_grant() {
        return format!("moved before: the new deployment can grant locks: {health}");
    }
    let wait = whole_seconds(health.wait.unwrap_or(Duration::from_secs(0)).max(Duration::from_secs(1)));
    format!(
        "moved: the old nodes refuse clients with the old URL. The new deployment has {} nodes and grants its first lock in \
         {wait} at most, when all leases of the old one are over.\n\
         Give every client the new URL. Until then it abstains; look with: leasehold redlock status NEW_URL",
        new.nodes().len()
    )
}
