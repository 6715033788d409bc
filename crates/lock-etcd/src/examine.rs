//! What operators should know of a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use lock_core::BackendError;
use lock_core::examine::Check;
use tokio::time::timeout;
use tonic::Status;

use crate::EtcdConfig;
use crate::cluster::Cluster;
use crate::proto::{KeyValue, StatusRequest, StatusResponse};
use crate::tokens::Base;
use crate::{error, once, txn, version};

/// How long an answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// What a server answered.
struct Asked {
    /// That of the server alone.
    config: EtcdConfig,
    told: Result<StatusResponse, Status>,
    /// The base of the tokens, if a majority has answered for it.
    base: Result<Option<KeyValue>, Status>,
}

/// Asks each server, and compares the answers.
pub(crate) fn examine(config: &EtcdConfig) -> Result<Vec<Check>, BackendError> {
    let bridge = crate::nonblocking::bridge()?;
    let alone = |alone: EtcdConfig| Ok((once::cluster(&alone, bridge.handle())?, alone));
    let alone: Vec<_> = config.each().map(alone).collect::<Result<_, BackendError>>()?;
    let asked = bridge.block_on(join_all(alone.into_iter().map(|(cluster, alone)| ask(cluster, alone))));
    let works = asked.iter().any(|asked| asked.told.is_ok());
    let mut checks: Vec<_> = asked.iter().map(|asked| reach(asked, works)).collect();
    let told: Vec<_> = asked.iter().filter_map(|asked| asked.told.as_ref().ok()).collect();
    let bases: Vec<_> = asked.iter().filter_map(|asked| asked.base.as_ref().ok()).collect();
    checks.extend(asked.iter().filter_map(learner));
    if !told.is_empty() {
        checks.extend([versions(&told), clusters(&told, &bases), alarms(&told)]);
    }
    checks.push(majority(&asked));
    checks.extend(broken_base(&bases));
    checks.extend([access(config), encryption(config)]);
    Ok(checks)
}

async fn ask(cluster: Cluster, config: EtcdConfig) -> Asked {
    let status = async { Ok(cluster.servers.ask("/etcdserverpb.Maintenance/Status", StatusRequest {}).await?.0) };
    let told = in_time(status).await;
    let base = in_time(base(&cluster)).await;
    Asked { config, told, base }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_| Err(Status::deadline_exceeded(format!("no answer within {ANSWERS_WITHIN:?}")));
    timeout(ANSWERS_WITHIN, answer).await.unwrap_or_else(late)
}

/// Reads the base of the tokens, for which the server has to ask the leader.
async fn base(cluster: &Cluster) -> Result<Option<KeyValue>, Status> {
    let read = txn::transaction(vec![], [vec![], vec![]], &[txn::get(txn::base_key(cluster.root()))]);
    let (told, _) = cluster.transact(read).await?;
    Ok(told.ranges.into_iter().flat_map(|range| range.kvs).next())
}

impl Asked {
    fn server(&self) -> String {
        self.config.servers().collect()
    }
}

/// Whether a server answers. If others do, it endangers no lock that this one does not.
fn reach(asked: &Asked, others_do: bool) -> Check {
    let check = match &asked.told {
        Ok(told) if told.header.is_some_and(|header| header.member_id == told.leader) => {
            Check::ok("reach", format!("etcd {}, the leader", told.version))
        }
        Ok(told) => Check::ok("reach", format!("etcd {}", told.version)),
        Err(failure) => {
            let message = error::of_opening(&asked.config, failure.clone()).to_string();
            if others_do { Check::remark("reach", message) } else { Check::failed("reach", message) }
        }
    };
    check.of(&asked.server())
}

fn learner(asked: &Asked) -> Option<Check> {
    let is_learner = asked.told.as_ref().is_ok_and(|told| told.is_learner);
    let check = Check::remark("learner", "it is a learner, which serves no client").of(&asked.server());
    is_learner.then(|| check.with_remedy("promote it, or leave it out of the URL"))
}

fn versions(told: &[&StatusResponse]) -> Check {
    let versions: BTreeSet<_> = told.iter().map(|told| &*told.version).collect();
    let shown = Vec::from_iter(versions.iter().copied()).join(", ");
    let faults: BTreeSet<_> = versions.iter().filter_map(|version| version::faults(version)).flatten().collect();
    if faults.is_empty() {
        return Check::ok("version", format!("etcd {shown}"));
    }
    let faults = Vec::from_iter(faults).join("; ");
    Check::finding("version", format!("etcd {shown}: {faults}"))
        .with_remedy(format!("upgrade to {}, or to a later version of one of these lines", version::FIXED))
}

/// Clusters that were started with the same settings have the same number, but not the same base.
fn clusters(told: &[&StatusResponse], bases: &[&Option<KeyValue>]) -> Check {
    let number = |told: &StatusResponse| told.header.map(|header| header.cluster_id);
    let differ = told.iter().any(|other| number(other) != number(told[0]));
    if differ || bases.iter().any(|other| *other != bases[0]) {
        return Check::finding("cluster", "the servers belong to different clusters: locks in one are not in another")
            .with_remedy("name the servers of one cluster only");
    }
    Check::ok("cluster", "the servers that answered are of one cluster")
}

fn alarms(told: &[&StatusResponse]) -> Check {
    let raised: BTreeSet<_> = told.iter().flat_map(|told| &told.errors).map(|alarm| alarm.trim()).collect();
    let has = |kind: &str| raised.iter().any(|alarm| alarm.contains(kind));
    let shown = || Vec::from_iter(raised.iter().copied()).join("; ");
    if has("NOSPACE") {
        return Check::failed("alarms", format!("no lock can be granted: {}", shown()))
            .with_remedy("make room: etcdctl compact, then etcdctl defrag, then etcdctl alarm disarm");
    }
    if has("CORRUPT") {
        return Check::finding("alarms", format!("the servers have different data: {}", shown()))
            .with_remedy("replace the servers whose data is wrong");
    }
    if raised.is_empty() { Check::ok("alarms", "none") } else { Check::remark("alarms", shown()) }
}

/// Whether requests that the leader has to order are answered.
fn majority(asked: &[Asked]) -> Check {
    if asked.iter().any(|asked| asked.base.is_ok()) {
        return Check::ok("majority", "a majority of the servers takes part");
    }
    let failure = asked.iter().find_map(|asked| asked.base.as_ref().err()).map_or("", Status::message);
    Check::failed("majority", format!("no request was carried out: {failure}"))
        .with_remedy("check that more than half of the servers are running and reach each other")
}

fn broken_base(bases: &[&Option<KeyValue>]) -> Option<Check> {
    let is_broken = bases.iter().copied().flatten().any(|base| Base::read(&base.value).is_none());
    let check = Check::failed("base", "leasehold-base, from which tokens are counted, holds no number");
    is_broken.then(|| check.with_remedy("stop all clients, and write it again with leasehold etcd base"))
}

/// Who may end locks behind the library's back.
fn access(config: &EtcdConfig) -> Check {
    let has_certificate = config.tls().is_some_and(|tls| tls.identity.is_some());
    if config.login().is_some() || has_certificate {
        return Check::ok("access", "if the servers have users, only those with a role for these keys can change them");
    }
    Check::remark("access", "anybody who can connect can delete the keys of locks")
        .with_remedy("enable authentication, and write a user and a password into the URL")
}

fn encryption(config: &EtcdConfig) -> Check {
    match (config.tls(), config.login()) {
        (Some(_), _) => Check::ok("encryption", "connections are encrypted"),
        (None, Some(_)) => {
            Check::remark("encryption", "connections are not encrypted: an eavesdropper learns the password")
                .with_remedy("use etcds:")
        }
        (None, None) => Check::remark("encryption", "connections are not encrypted"),
    }
}

#[cfg(test)]
mod tests {
    use lock_core::examine::Verdict;

    use super::*;

    fn told(alarms: &[&str]) -> StatusResponse {
        let errors = alarms.iter().map(ToString::to_string).collect();
        StatusResponse { errors, is_learner: true, ..StatusResponse::default() }
    }

    #[test]
    fn alarms_and_learners_are_told() {
        let verdict = |alarm: &[&str]| alarms(&[&told(&[]), &told(alarm)]).verdict;
        let raised = [&["memberID:1 alarm:NOSPACE "][..], &["memberID:1 alarm:CORRUPT "], &["another"], &[]];
        assert_eq!(raised.map(verdict), [Verdict::Failed, Verdict::Finding, Verdict::Remark, Verdict::Ok]);
        let config = EtcdConfig::from_url("etcd://e1").unwrap();
        let asked = Asked { config, told: Ok(told(&[])), base: Ok(None) };
        assert_eq!(learner(&asked).map(|check| check.verdict), Some(Verdict::Remark));
    }
}
