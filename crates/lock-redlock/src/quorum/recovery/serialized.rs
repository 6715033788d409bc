//! How a report is written, for instance as JSON: with the field names of `leasehold redlock status --json`, and times in milliseconds.

use std::time::Duration;

use lock_core::node::{NodeState, View};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::report::{NodeReport, Report};

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let voting = self.voting();
        let mut fields = serializer.serialize_struct("Report", 7)?;
        fields.serialize_field("can_grant", &(voting >= self.majority))?;
        fields.serialize_field("voting", &voting)?;
        fields.serialize_field("majority", &self.majority)?;
        fields.serialize_field("spare", &voting.saturating_sub(self.majority))?;
        fields.serialize_field("wait_ms", &self.wait().map(millis))?;
        fields.serialize_field("nodes", &self.nodes)?;
        fields.serialize_field("warnings", &self.warnings())?;
        fields.end()
    }
}

impl Serialize for NodeReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = self.view.as_ref().ok();
        let mut fields = serializer.serialize_struct("NodeReport", 9)?;
        fields.serialize_field("node", &self.address)?;
        fields.serialize_field("state", state(self))?;
        fields.serialize_field("votes_in_ms", &self.votes_in.map(millis))?;
        fields.serialize_field("run", &view.map(|view| view.run.0.as_str()))?;
        fields.serialize_field("counter", &view.map(|view| view.counter))?;
        fields.serialize_field("clock", &view.map(|view| view.clock.0))?;
        fields.serialize_field("longest_ttl_ms", &view.map(|view| millis(view.longest)))?;
        fields.serialize_field("evicts", &view.and_then(|view| view.evicts.as_deref()))?;
        fields.serialize_field("error", &self.view.as_ref().err().map(ToString::to_string))?;
        fields.end()
    }
}

fn state(node: &NodeReport) -> &'static str {
    match &node.view {
        Err(error) if error.kind().is_transient() => "away",
        Err(_) => "refused",
        Ok(View { state: NodeState::Voting(_), .. }) => "votes",
        Ok(View { state: NodeState::Abstaining { .. }, .. }) => "abstains",
        Ok(View { membership: None, .. }) => "empty",
        Ok(_) => "restarted",
    }
}
