//! One run of one subject at a server with replicas.

use anyhow::Result;
use bench_measure::{Ending, Plan, Runtime, Subject, Work};

use crate::figures::Figures;
use crate::runs::Ground;
use crate::scale::Scale;

impl Ground<'_> {
    /// Tasks whose grants wait for replicas, or do not.
    pub(crate) fn replicated(&mut self, subject: Subject, tasks: u32) -> Result<Figures> {
        let Scale { warm_up, span, .. } = self.scale;
        let plan =
            self.plan(subject, Runtime::CurrentThread, Work::Pairs { tasks, ending: Ending::Awaited, warm_up, span });
        let options = [(Subject::OneReplica, "?replicas=1"), (Subject::TwoReplicas, "?replicas=2")];
        let option = options.iter().find(|(option, _)| *option == subject).map_or("", |(_, option)| option);
        let servers = plan.servers.iter().map(|url| format!("{url}{option}")).collect();
        self.pairs(&Plan { servers, ..plan })
    }
}
