//! A quorum of real servers, and the command on it.

use std::process::Output;

use serde_json::Value;
use test_support::{Finish, RedisServer};

use super::leasehold::{Leasehold, code, text};

/// The longest ttl of these deployments: how long nodes abstain that know nothing.
pub(crate) const MAX_TTL: &str = "4s";
/// With this ttl as the longest in use, a node that forgot is back after some three seconds.
pub(crate) const RUN: &str = "--ttl 3s --url";

/// Some servers, as a deployment and each by itself.
pub(crate) struct Nodes {
    pub(crate) leasehold: Leasehold,
    pub(crate) servers: Vec<RedisServer>,
}

impl Nodes {
    /// This many unused nodes.
    pub(crate) fn blank(count: usize) -> Self {
        Self { leasehold: Leasehold::new(), servers: (0..count).map(|_| RedisServer::start()).collect() }
    }

    /// The same, declared to be new.
    pub(crate) fn founded(count: usize) -> Self {
        let nodes = Self::blank(count);
        let output = nodes.redlock("init", &[nodes.url()]);
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        nodes
    }

    /// They keep their data, and do not vote: as after a restart.
    pub(crate) fn all_forget_to_vote(&self) {
        self.servers.iter().for_each(|server| server.command::<()>(&["HDEL", "leasehold:node", "seal"]));
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(0..self.servers.len())
    }

    pub(crate) fn url_of(&self, which: impl IntoIterator<Item = usize>) -> String {
        let hosts: Vec<_> = which.into_iter().map(|node| self.address(node)).collect();
        format!("redlock://{}?max_ttl={MAX_TTL}", hosts.join(","))
    }

    pub(crate) fn address(&self, node: usize) -> String {
        format!("127.0.0.1:{}", self.servers[node].port())
    }

    pub(crate) fn redlock(&self, task: &str, arguments: &[String]) -> Output {
        self.leasehold.command("redlock").arg(task).args(arguments).finish()
    }

    pub(crate) fn status(&self) -> Value {
        let output = self.redlock("status", &["--json".to_owned(), self.url()]);
        let status: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
        let healthy = if status["can_grant"] == true { 0 } else { 69 };
        // Clients are refused because of an unsuitable node.
        assert!([healthy, 78].contains(&code(output.status)), "{}", text(&output.stderr));
        status
    }

    pub(crate) fn states(&self) -> Vec<String> {
        let status = self.status();
        status["nodes"].as_array().unwrap().iter().map(|node| node["state"].as_str().unwrap().to_owned()).collect()
    }

    /// Runs a command that must get the lock, and returns its token.
    pub(crate) fn token(&self, url: &str) -> u64 {
        let output = self.leasehold.run(&format!("-n {RUN} {url} a"), "echo $LEASEHOLD_FENCE");
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        text(&output.stdout).trim().parse().unwrap()
    }

    /// Runs `leasehold` with a command that must not start, and returns the output.
    pub(crate) fn refused(&self, options: &str, expected: i32) -> String {
        let output = self.leasehold.run(options, "touch ran");
        let said = text(&output.stderr);
        assert_eq!(code(output.status), expected, "{options}: {said}");
        assert!(!self.leasehold.scratch.file("ran").exists(), "{options}: the command ran");
        said
    }
}
