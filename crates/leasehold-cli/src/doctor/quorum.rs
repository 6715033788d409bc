//! The checks of a quorum.

use leasehold::redlock::{NodeReport, Purpose, RedlockConfig, Report};

use leasehold::inspect::Check;

use super::check::Checks;
use crate::exit::Exit;
use crate::quorum::{Health, Quorum};

/// Asks all nodes.
pub(super) fn check(config: &RedlockConfig, checks: &mut Checks) {
    match Quorum::open(config).and_then(|quorum| quorum.pass(Purpose::Look)) {
        Ok(report) => nodes(&report, checks),
        Err(failure) => checks.fail("reach", &failure),
    }
}

fn nodes(report: &Report, checks: &mut Checks) {
    report.nodes.iter().for_each(|node| checks.add(of_node(node)));
    let health = Health::of(report);
    let check = if report.is_blank() {
        let problem = "no node knows the others yet, so no lock is granted at first";
        Check::remark("quorum", problem)
            .with_remedy("if no lock was ever granted there, run leasehold redlock init URL")
    } else if !health.can_grant() {
        let problem = Check::failed("quorum", format!("no lock can be granted: {health}"));
        return checks.add_failed(problem.with_remedy("leasehold redlock status URL says more"), Exit::Unavailable);
    } else if health.spare() == 0 {
        Check::finding("quorum", health.to_string()).with_remedy("bring the other nodes back")
    } else {
        Check::ok("quorum", health.to_string())
    };
    checks.add(check);
    if report.has_strangers() {
        let problem = "a node does not count: it belongs to another deployment, or to none";
        checks.add(Check::finding("quorum", problem).with_remedy("leasehold redlock status URL says which"));
    }
}

fn of_node(node: &NodeReport) -> Check {
    let address = &node.address;
    match &node.view {
        Err(error) => Check::remark("node", format!("{address}: {error}")),
        Ok(view) => match &view.evicts {
            Some(policy) => {
                Check::finding("node", format!("{address} may drop locks: its maxmemory-policy is {policy}"))
                    .with_remedy("CONFIG SET maxmemory-policy noeviction, and the same in redis.conf")
            }
            None if view.votes() => Check::ok("node", format!("{address} votes")),
            None => Check::remark("node", format!("{address} does not vote now")),
        },
    }
}
