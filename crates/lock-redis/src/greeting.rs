//! The first words on a new connection: who the server is, and whether it will do.

use lock_core::{Effect, ErrorKind};
use redis::{Cmd, Pipeline, Value};

use crate::failure::Failure;
use crate::script::{self, Counting};
use crate::value::{COUNTER, INCARNATION};
use crate::wire::{load, read};

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
            Self::Alone => &["server", "replication"],
            Self::Node => &["server", "replication", "cluster", "memory"],
        }
    }
}

/// Who is at the other end of a connection, as it said when it was greeted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The server's name for this run of it.
    pub(crate) run_id: String,
    /// The server's name for the history of its data; nothing where it has none. It is another after each promotion.
    pub(crate) replid: String,
    /// How it makes room when its memory is full, where that may drop locks and it was asked.
    pub(crate) evicts: Option<String>,
    /// How tokens are drawn over this connection.
    pub(crate) counting: Counting,
}

impl Peer {
    /// Whoever a connection leads to that was handed in.
    #[cfg(any(feature = "async", feature = "r2d2"))]
    pub(crate) const UNKNOWN: &'static Self =
        &Self { run_id: String::new(), replid: String::new(), evicts: None, counting: Counting::Clock };

    fn read(info: &str) -> Result<Self, Failure> {
        let run_id = field(info, "run_id:").ok_or_else(Failure::strange_answer)?.to_owned();
        let replid = field(info, "master_replid:").unwrap_or_default().to_owned();
        // What follows a promotion may lack the last draws, and connections live through promotions unseen.
        let alone = field(info, "connected_slaves:") == Some("0") && !replid.is_empty();
        let counting = if alone { Counting::Stored } else { Counting::Clock };
        Ok(Self { run_id, replid, evicts: evicts(info), counting })
    }

    /// Whether what a server answers to [`again`] is what it said when it was greeted.
    pub(crate) fn is_still(&self, answer: Value) -> bool {
        read::<String>(answer).is_ok_and(|info| field(&info, "master_replid:").unwrap_or_default() == self.replid)
    }

    /// What a counter is verified for: one history of one run.
    pub(crate) fn incarnation(&self) -> String {
        format!("{}:{}", self.run_id, self.replid)
    }
}

/// A server that was met.
pub(crate) struct Met {
    pub(crate) peer: Peer,
    /// What has to be sent before anything else; nothing where the server's counter was verified already.
    pub(crate) verification: Option<Cmd>,
}

/// Asks who the server is, and loads the scripts, so that no later request has to be sent twice and so overtaken.
pub(crate) fn greeting(role: Role) -> Pipeline {
    let mut greeting = redis::pipe();
    for section in role.sections() {
        greeting.cmd("INFO").arg(section);
    }
    let scripts = match role {
        Role::Alone => {
            greeting.cmd("GET").arg(INCARNATION);
            script::OWN.as_slice()
        }
        Role::Node => script::NODE.as_slice(),
    };
    for script in scripts {
        greeting.add_command(load(script));
    }
    greeting
}

/// Asks whether the server's data is still of the history that it was greeted in.
pub(crate) fn again() -> Cmd {
    let mut again = redis::cmd("INFO");
    again.arg("replication");
    again
}

/// Reads the answers to a greeting.
pub(crate) fn meet(role: Role, server: &str, greeted: Vec<Value>) -> Result<Met, Failure> {
    let mut answers = greeted.into_iter();
    let sections = answers.by_ref().take(role.sections().len()).map(read::<String>);
    let info = sections.collect::<Result<Vec<_>, _>>()?.concat();
    if role == Role::Node {
        check(server, &info)?;
    }
    let peer = Peer::read(&info)?;
    let verification = match role {
        Role::Alone => verification(&peer, read(answers.next().unwrap_or(Value::Nil))?),
        Role::Node => None,
    };
    Ok(Met { peer, verification })
}

/// Verifies the counter against the server that was met, unless it was so already.
fn verification(peer: &Peer, verified: Option<String>) -> Option<Cmd> {
    let incarnation = peer.incarnation();
    if verified.as_ref() == Some(&incarnation) {
        return None;
    }
    let mut verify = redis::cmd("EVAL");
    verify.arg(script::VERIFY.text()).arg(2).arg(COUNTER).arg(INCARNATION);
    verify.arg(incarnation).arg(verified.unwrap_or_default());
    Some(verify)
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
            "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid:cd34\r\n",
            "# Cluster\r\ncluster_enabled:0\r\n",
            "# Memory\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n",
        ];
        let answers = sections.map(|text| Value::BulkString(text.replace(replaced, by).into_bytes()));
        meet(Role::Node, "redis://h", [answers.to_vec(), vec![Value::Nil]].concat()).map(|met| met.peer)
    }

    #[test]
    fn a_node_is_a_primary_on_its_own() {
        let peer = met("x", "x").unwrap();
        assert_eq!((peer.incarnation().as_str(), peer.evicts.as_deref()), ("ab12:cd34", Some("allkeys-lru")));
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

    #[test]
    fn tokens_come_from_the_clock_where_a_promotion_may_come() {
        let counting = |replaced, by| met(replaced, by).unwrap().counting;
        assert_eq!(counting("x", "x"), Counting::Stored);
        assert_eq!(counting("slaves:0", "slaves:1"), Counting::Clock);
        assert_eq!(counting("master_replid:cd34", "nothing:"), Counting::Clock);
    }
}
