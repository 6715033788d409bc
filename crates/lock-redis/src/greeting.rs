//! The first words on a new connection: who the server is, and whether it will do.

use lock_core::{Effect, ErrorKind};
use redis::{Pipeline, Value};

use crate::failure::Failure;
use crate::script;
use crate::value::{COUNTER, MARKER};
use crate::wire::{Call, load, read};

/// What a server is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The one Redis of a client: its counter is verified.
    Alone,
    /// A node of a quorum: each of its requests says which run it is meant for.
    Node,
}

impl Role {
    /// What is asked of the server, one section at a time: Redis 6.2 knows no other way.
    fn sections(self) -> &'static [&'static str] {
        match self {
            Self::Alone => &["server"],
            Self::Node => &["server", "replication", "cluster", "memory"],
        }
    }
}

/// Who is at the other end of a connection, as it said when it was greeted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The server's name for this run of it.
    pub(crate) run_id: String,
    /// How it makes room when its memory is full, where that may drop locks and it was asked.
    pub(crate) evicts: Option<String>,
}

impl Peer {
    /// Whoever a connection leads to that was handed in.
    pub(crate) const UNKNOWN: &'static Self = &Self { run_id: String::new(), evicts: None };
}

/// Asks who the server is, and loads the scripts, so that no later request has to be sent twice and so overtaken.
pub(crate) fn greeting(role: Role) -> Pipeline {
    let mut greeting = redis::pipe();
    for section in role.sections() {
        greeting.cmd("INFO").arg(section);
    }
    let scripts = match role {
        Role::Alone => script::OWN.as_slice(),
        Role::Node => script::NODE.as_slice(),
    };
    for script in scripts {
        greeting.add_command(load(script));
    }
    greeting
}

/// Reads the answers to a greeting.
pub(crate) fn meet(role: Role, server: &str, greeted: Vec<Value>) -> Result<Peer, Failure> {
    let sections = greeted.into_iter().take(role.sections().len()).map(read::<String>);
    let info = sections.collect::<Result<Vec<_>, _>>()?.concat();
    if role == Role::Node {
        check(server, &info)?;
    }
    let run_id = field(&info, "run_id:").ok_or_else(Failure::strange_answer)?.to_owned();
    Ok(Peer { run_id, evicts: evicts(&info) })
}

/// Verifies the counter against the server that was met, where it is the only one.
pub(crate) fn verification(role: Role, peer: &Peer) -> Option<Call> {
    match role {
        Role::Alone => Some(Call::script(&script::VERIFY, &[COUNTER, MARKER]).arg(&peer.run_id)),
        Role::Node => None,
    }
}

/// Refuses what cannot be a node: its data is somebody else's, or its keys are elsewhere.
fn check(server: &str, info: &str) -> Result<(), Failure> {
    let refused = |fault: &str| Failure::new(ErrorKind::Config, Effect::None, format!("{server} {fault}"));
    if field(info, "role:") != Some("master") {
        return Err(refused("is a replica").remedy("list a primary; the nodes of a quorum are independent"));
    }
    if field(info, "cluster_enabled:") == Some("1") {
        return Err(refused("is one of a cluster").remedy("use standalone servers as the nodes of a quorum"));
    }
    Ok(())
}

fn evicts(info: &str) -> Option<String> {
    let policy = field(info, "maxmemory_policy:").filter(|policy| *policy != "noeviction")?;
    (field(info, "maxmemory:")? != "0").then(|| policy.to_owned())
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use lock_core::Operation;

    use super::*;

    fn met(replaced: &str, by: &str) -> Result<Peer, Failure> {
        let sections = [
            "# Server\r\nrun_id:ab12\r\n",
            "# Replication\r\nrole:master\r\n",
            "# Cluster\r\ncluster_enabled:0\r\n",
            "# Memory\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n",
        ];
        let answers = sections.map(|text| Value::BulkString(text.replace(replaced, by).into_bytes()));
        meet(Role::Node, "redis://h", [answers.to_vec(), vec![Value::Nil]].concat())
    }

    #[test]
    fn a_node_is_a_primary_on_its_own() {
        assert_eq!(met("x", "x").unwrap(), Peer { run_id: "ab12".into(), evicts: Some("allkeys-lru".into()) });
        assert_eq!(met("allkeys-lru", "noeviction").unwrap().evicts, None);
        assert_eq!(met("maxmemory:1000", "maxmemory:0").unwrap().evicts, None);
        for (was, is, told) in [
            ("role:master", "role:slave", "redis://h is a replica; list a primary"),
            ("enabled:0", "enabled:1", "redis://h is one of a cluster; use standalone"),
        ] {
            let error = met(was, is).unwrap_err().into_error(Operation::Inspect);
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None));
            assert!(error.to_string().contains(told), "{error}");
        }
        assert!(met("run_id", "id").is_err());
    }
}
