//! What the nodes record about each other: which epoch began last at a member, and when. So short-lived processes can
//! measure a dwell together, and a second server behind an address is noticed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Recording, Sighting};

use super::super::node::Node;
use super::super::nodes::Nodes;
use super::super::outgoing::NodeId;
use super::super::watch::Records;
use super::{Dwell, Pass};

/// How long a record is kept. Chosen: more than a year, so that a job that runs once a year ends a dwell, too.
const KEEP: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// How far apart records of one epoch may be, in addition to one percent: the time that requests take while they are made.
const APART: Duration = Duration::from_secs(2);

impl Pass {
    pub(super) fn read_records(&mut self, nodes: &mut Nodes) {
        self.record(nodes, &BTreeMap::new());
    }

    /// Makes these records at all nodes that answer, and reads their records of every member.
    pub(super) fn record(&mut self, nodes: &mut Nodes, recordings: &BTreeMap<NodeId, Recording>) {
        let sighting = |(index, state): (usize, &Node)| Sighting {
            member: state.address.clone(),
            recording: recordings.get(&NodeId(index)).copied().unwrap_or(Recording::Nothing),
        };
        let seen: Arc<[Sighting]> = nodes.all.iter().enumerate().map(sighting).collect();
        for node in nodes.ids().filter(|node| self.views[node.0].is_ok()).collect::<Vec<_>>() {
            self.send(nodes, node, Ask::Record { seen: Arc::clone(&seen), keep: KEEP });
        }
    }

    /// How old each node's record of this epoch is.
    pub(super) fn ages(&self, node: NodeId, epoch: Epoch) -> Vec<Duration> {
        let records = self.records.get(&node).into_iter().flatten();
        records.filter(|recorded| recorded.epoch == epoch).map(|recorded| recorded.age).collect()
    }

    /// Records that disagree may never agree, because some were made later or a clock was set. They start again together.
    pub(super) fn begin_records_anew(&mut self, nodes: &mut Nodes) {
        let differ = |node: NodeId, epoch| {
            let ages = self.ages(node, epoch);
            ages.len() >= nodes.majority() && agreed(ages, nodes.majority()).is_none()
        };
        let anew = self.dwells.iter().filter(|(node, dwell)| differ(**node, dwell.epoch));
        let anew: BTreeMap<_, _> = anew.map(|(node, dwell)| (*node, Recording::BeginsAnew(dwell.epoch))).collect();
        if !anew.is_empty() {
            self.record(nodes, &anew);
        }
    }

    /// Whether a later process can tell since when the nodes have abstained.
    pub(super) fn records_kept(&self, nodes: &Nodes) -> Records {
        let kept = |(node, dwell): (&NodeId, &Dwell)| self.ages(*node, dwell.epoch).len() >= nodes.majority();
        if self.dwells.iter().all(kept) { Records::Kept } else { Records::Lacking(self.record_failure.clone()) }
    }
}

/// The youngest of the oldest majority of records that agree with each other. After a clock was set, they disagree and none
/// counts.
pub(super) fn agreed(mut ages: Vec<Duration>, majority: usize) -> Option<Duration> {
    ages.sort_unstable_by(|a, b| b.cmp(a));
    let agree = |ages: &&[Duration]| ages[0] - ages[majority - 1] <= ages[0] / 100 + APART;
    ages.windows(majority).find(agree).map(|ages| ages[majority - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_count_where_a_majority_agrees() {
        let seconds = |ages: &[u64]| ages.iter().map(|age| Duration::from_secs(*age)).collect::<Vec<_>>();
        for (ages, majority, expected) in [
            (&[][..], 2, None),
            (&[50], 2, None),
            (&[50, 50], 2, Some(50)),
            (&[50, 48], 2, Some(48)),
            (&[0, 2], 2, Some(0)),
            (&[50, 47], 2, None),
            (&[1000, 988], 2, Some(988)),
            (&[1000, 987], 2, None),
            (&[0, 1000, 999], 2, Some(999)),
            (&[3600, 10, 11], 2, Some(10)),
            (&[3600, 3000, 20, 10, 0], 3, None),
            (&[3600, 12, 12, 11, 0], 3, Some(11)),
        ] {
            assert_eq!(agreed(seconds(ages), majority), expected.map(Duration::from_secs), "{ages:?}");
        }
    }
}
