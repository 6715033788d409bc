//! The first exchange on a new connection: which server it is, and whether it is suitable.

use std::ptr;
use std::sync::Arc;

use lock_core::{Effect, ErrorKind};
use redis::{Cmd, Pipeline, Value};

use super::learned::Learned;
use super::server_info::ServerInfo;
use super::verification;
use crate::RedisConfig;
use crate::classify::{CLUSTER, classify};
use crate::config::Eviction;
use crate::connect::{CONNECT_WITHIN, connecting};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::keys::{Key, Scope};
use crate::replicas::Copies;
use crate::script::{self, Counting, Script};
use crate::target::Target;
use crate::wire::{load, read};

/// What a connection most likely needs, if tokens are drawn like this.
fn scripts(deployment: Deployment, counting: Counting) -> Vec<&'static Script> {
    let scripts = match deployment {
        Deployment::OneServer => script::own(counting).to_vec(),
        Deployment::Sentinels | Deployment::Cluster => script::own(Counting::Clock).to_vec(),
        Deployment::Quorum => script::node::ALL.to_vec(),
    };
    scripts.into_iter().flat_map(|script| [Some(script), script.many().map(|many| &many.script)]).flatten().collect()
}

/// What is asked of the server, one section at a time: Redis 6.2 knows no other way.
const SECTIONS: [&str; 4] = ["server", "replication", "cluster", "memory"];

impl ServerInfo {
    fn read(target: &Target, server: &str, info: &str) -> Result<Self, Failure> {
        let run_id = field(info, "run_id:").ok_or_else(|| Failure::tells_no("run_id", server))?.to_owned();
        let replid = field(info, "master_replid:").unwrap_or_default().to_owned();
        // A promoted server may lack the last draws, and connections survive promotions unnoticed.
        let replicas = field(info, "connected_slaves:").and_then(|digits| digits.parse().ok());
        let may_be_replaced = matches!(target.deployment, Deployment::Sentinels | Deployment::Cluster);
        let alone = !may_be_replaced && replicas == Some(0) && !replid.is_empty();
        let counting = if alone { Counting::Stored } else { Counting::Clock };
        let (evicts, replicas) = (evicts(info), replicas.unwrap_or_default());
        let learned = Some(Arc::new(Learned::default()));
        let failover = target.failover;
        Ok(Self { run_id, replid, evicts, is_node: false, replicas, counting, failover, learned })
    }

    /// Whether a server's answer to [`again`] is the same as in its greeting.
    pub(crate) fn is_still(&self, answer: Value) -> bool {
        read::<String>(answer).is_ok_and(|info| field(&info, "master_replid:").unwrap_or_default() == self.replid)
    }
}

/// A server that was greeted.
pub(crate) struct Met {
    pub(crate) server_info: ServerInfo,
    /// What has to be sent before anything else; usually nothing.
    pub(crate) preparation: Option<Pipeline>,
}

/// Asks who the server is, and which scripts it knows: what is missing is loaded first, so that no later request has to be sent
/// twice and so overtaken.
pub(crate) fn greeting(deployment: Deployment) -> Pipeline {
    let mut greeting = redis::pipe();
    for section in SECTIONS {
        greeting.cmd("INFO").arg(section);
    }
    for scripts in asked_together(deployment) {
        greeting.cmd("SCRIPT").arg("EXISTS");
        scripts.iter().for_each(|script| _ = greeting.arg(script.hash()));
    }
    if matches!(deployment, Deployment::OneServer | Deployment::Sentinels) {
        greeting.cmd("GET").arg(Key::Incarnation(Scope::Database));
        greeting.cmd("GET").arg(Key::Longest(Scope::Database));
        greeting.cmd("EXISTS").arg(Key::Node);
    }
    // A server of a cluster refuses the last one, and is recognized by what it reports about itself.
    greeting.ignore_errors();
    greeting
}

/// The scripts to ask for, in groups: a server closes the connection of a client that has not logged in and sends a command
/// of more than ten words. How tokens are drawn is not known yet.
fn asked_together(deployment: Deployment) -> Vec<Vec<&'static Script>> {
    let mut all = scripts(deployment, Counting::Stored);
    for script in scripts(deployment, Counting::Clock) {
        if !all.iter().any(|other| ptr::eq(*other, script)) {
            all.push(script);
        }
    }
    all.chunks(8).map(<[_]>::to_vec).collect()
}

/// Asks whether the server's data still has the history that the greeting found.
pub(crate) fn again() -> Cmd {
    let mut again = redis::cmd("INFO");
    again.arg("replication");
    again
}

/// Reads the answers to a greeting.
pub(crate) fn meet(target: &Target, greeted: Vec<Value>) -> Result<Met, Failure> {
    let (server, deployment) = (&target.shown(), target.deployment);
    let refused = |error| classify(connecting(server, CONNECT_WITHIN), &error);
    let mut answers = greeted.into_iter().map(|answer| answer.extract_error().map_err(refused));
    let sections = answers.by_ref().take(SECTIONS.len()).map(|answer| answer.and_then(read::<String>));
    let info = sections.collect::<Result<Vec<_>, _>>()?.concat();
    check(deployment, server, &info)?;
    let mut server_info = ServerInfo::read(target, server, &info)?;
    let mut answer = || answers.next().unwrap_or_else(|| Err(Failure::strange_answer()));
    let mut unknown: Vec<&Script> = Vec::new();
    for scripts in asked_together(deployment) {
        let known: Vec<bool> = read(answer()?)?;
        unknown.extend(scripts.into_iter().zip(known).filter(|(_, known)| !known).map(|(script, _)| script));
    }
    let needed = scripts(deployment, server_info.counting).into_iter();
    let missing = needed.filter(|script| unknown.iter().any(|other| ptr::eq(*other, *script))).map(load);
    let verification = match deployment {
        Deployment::OneServer | Deployment::Sentinels => {
            let (verified, longest) = (read(answer()?)?, read::<Option<u64>>(answer()?)?);
            server_info.learned.iter().for_each(|learned| learned.raise(longest.unwrap_or_default()));
            // It is needed only for a warning, so a client that may not ask goes without.
            server_info.is_node = answer().and_then(read).is_ok_and(|is_node: bool| is_node);
            verification::of_server(&server_info, promoted(&info), verified, longest)
        }
        Deployment::Cluster | Deployment::Quorum => None,
    };
    let mut preparation = redis::pipe();
    missing.chain(verification).for_each(|command| _ = preparation.add_command(command));
    Ok(Met { server_info, preparation: (!preparation.is_empty()).then_some(preparation) })
}

/// Whether the server's data may be that of another one.
fn promoted(info: &str) -> &'static str {
    let is_unpromoted = field(info, "master_replid2:").is_some_and(|name| name.bytes().all(|digit| digit == b'0'));
    if is_unpromoted { "unpromoted" } else { "promoted" }
}

/// Refuses servers that keep no locks of their own: their data belongs to another server, or their keys are elsewhere.
fn check(deployment: Deployment, server: &str, info: &str) -> Result<(), Failure> {
    // The second one is what Valkey says.
    if ["redis_mode:", "server_mode:"].iter().any(|name| field(info, name) == Some("sentinel")) {
        let failure = Failure::new(ErrorKind::Config, Effect::None, format!("{server} is a sentinel"));
        return Err(failure.remedy("use redis+sentinel://HOST:PORT/NAME, with the name of the primary"));
    }
    if field(info, "role:") == Some("slave") {
        let (kind, remedy) = match deployment {
            // It may be a primary again soon.
            Deployment::OneServer => (ErrorKind::Unavailable, "connect to the primary"),
            Deployment::Sentinels => (ErrorKind::Unavailable, "wait until the sentinels name another primary"),
            Deployment::Cluster => (ErrorKind::Unavailable, "wait until the cluster has another primary"),
            Deployment::Quorum => (ErrorKind::Config, "list a primary; the nodes of a quorum are independent"),
        };
        return Err(Failure::new(kind, Effect::None, format!("{server} is a replica")).remedy(remedy).dropping());
    }
    let in_cluster = field(info, "cluster_enabled:") == Some("1");
    let (kind, remedy) = match deployment {
        Deployment::Cluster if in_cluster => return Ok(()),
        Deployment::Cluster => {
            let failure = Failure::new(ErrorKind::Config, Effect::None, format!("{server} belongs to no cluster"));
            return Err(failure.remedy("use redis://HOST:PORT"));
        }
        _ if !in_cluster => return Ok(()),
        Deployment::OneServer | Deployment::Sentinels => (ErrorKind::Unsupported, CLUSTER),
        Deployment::Quorum => (ErrorKind::Config, "use standalone servers as the nodes of a quorum"),
    };
    Err(Failure::new(kind, Effect::None, format!("{server} belongs to a cluster")).remedy(remedy))
}

/// Warnings for operators about a server that was greeted.
pub(crate) fn warnings(config: &RedisConfig, server_info: &ServerInfo) -> Vec<String> {
    let server = config.shown_url();
    let policy = server_info.evicts.as_ref().filter(|_| config.eviction == Eviction::Warned);
    let dropped = policy.map(|policy| {
        format!(
            "{server} may drop held locks when its memory is full: its maxmemory-policy is {policy}; \
             set it to noeviction, or add ?eviction=allow to the URL"
        )
    });
    let alone = server_info.is_node.then(|| {
        format!(
            "{server} is a node of a quorum: a lock taken here alone may also be granted by the quorum; \
             use the redlock:// URL"
        )
    });
    let wanted = config.copies().map(Copies::replicas).filter(|wanted| server_info.replicas < u32::from(*wanted));
    let unacknowledged = wanted.map(|wanted| {
        let connected = server_info.replicas;
        format!(
            "{server} has only {connected} of the {wanted} connected replicas that the URL asks for: it grants no lock \
             until the others are connected"
        )
    });
    dropped.into_iter().chain(alone).chain(unacknowledged).collect()
}

fn evicts(info: &str) -> Option<String> {
    let policy = field(info, "maxmemory_policy:").filter(|policy| *policy != "noeviction")?;
    (field(info, "maxmemory:")? != "0").then(|| policy.to_owned())
}

/// A field of what `INFO` answers. Its name ends with a colon.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use lock_core::Operation;
    use redis::Client;

    use super::*;
    use crate::failover::Failover;

    const ALONE: Deployment = Deployment::OneServer;

    fn met_as(deployment: Deployment, replaced: &str, by: &str) -> Result<ServerInfo, Failure> {
        let sections = [
            "# Server\r\nrun_id:ab12\r\n",
            "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid:cd34\r\n",
            "# Cluster\r\ncluster_enabled:0\r\n",
            "# Memory\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n",
        ];
        let answers = sections.map(|text| Value::BulkString(text.replace(replaced, by).into_bytes()));
        let known = |group: &Vec<_>| Value::Array(vec![Value::Int(1); group.len()]);
        let known: Vec<_> = asked_together(deployment).iter().map(known).collect();
        let target = Target::new(Client::open("redis://h").unwrap(), deployment, Failover::UNHEEDED);
        meet(&target, [answers.to_vec(), known, vec![Value::Nil, Value::Nil, Value::Int(0)]].concat())
            .map(|met| met.server_info)
    }

    fn met(replaced: &str, by: &str) -> Result<ServerInfo, Failure> {
        met_as(ALONE, replaced, by)
    }

    #[test]
    fn a_server_of_locks_is_a_primary_on_its_own() {
        let server_info = met("x", "x").unwrap();
        assert_eq!(
            (server_info.incarnation().as_str(), server_info.evicts.as_deref()),
            ("ab12:cd34", Some("allkeys-lru"))
        );
        for (was, is) in [("allkeys-lru", "noeviction"), ("maxmemory:1000", "maxmemory:0")] {
            assert_eq!(met(was, is).unwrap().evicts, None);
        }
        for (deployment, was, is, kind, told) in [
            (ALONE, "role:master", "role:slave", ErrorKind::Unavailable, "redis://h:6379 is a replica; connect to the"),
            (
                Deployment::Quorum,
                "role:master",
                "role:slave",
                ErrorKind::Config,
                "redis://h:6379 is a replica; list a primary",
            ),
            (ALONE, "enabled:0", "enabled:1", ErrorKind::Unsupported, "belongs to a cluster; use redis+cluster://"),
            (
                Deployment::Quorum,
                "enabled:0",
                "enabled:1",
                ErrorKind::Config,
                "redis://h:6379 belongs to a cluster; use standalone",
            ),
            (
                ALONE,
                "run_id",
                "server_mode:sentinel\r\nrun_id",
                ErrorKind::Config,
                "redis://h:6379 is a sentinel; use redis+s",
            ),
            (ALONE, "run_id", "id", ErrorKind::Unsupported, "redis://h:6379 reports no run_id in its INFO; use Redis"),
        ] {
            let error = met_as(deployment, was, is).unwrap_err().into_error(Operation::Inspect);
            assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{error}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    /// Its keys are at another server, which only the map names.
    #[test]
    fn a_replica_of_a_cluster_is_no_place_for_a_request() {
        assert!(met_as(Deployment::Cluster, "role:master", "role:slave").unwrap_err().is_elsewhere());
    }

    #[test]
    fn a_server_is_no_longer_the_one_that_was_greeted_once_it_has_another_history() {
        let server_info = met("x", "x").unwrap();
        let answer = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        assert!(server_info.is_still(answer("# Replication\r\nmaster_replid:cd34\r\n")));
        assert!(!server_info.is_still(answer("# Replication\r\nmaster_replid:ef56\r\n")));
        assert!(!server_info.is_still(answer("# Replication\r\n")) && !server_info.is_still(Value::Nil));
    }

    #[test]
    fn tokens_come_from_the_clock_where_a_promotion_may_come() {
        let counting = |replaced, by| met(replaced, by).unwrap().counting;
        assert_eq!(counting("x", "x"), Counting::Stored);
        assert_eq!(counting("slaves:0", "slaves:1"), Counting::Clock);
        assert_eq!(counting("master_replid:cd34", "nothing:"), Counting::Clock);
    }
}
