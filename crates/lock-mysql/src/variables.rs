//! How a server is set up.

use std::collections::HashMap;

use lock_core::{BackendError, Effect, ErrorKind};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::error;

/// Only those that the server has: MySQL and MariaDB have different ones.
const QUESTION: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'read_only', 'super_read_only', 'wsrep_on', \
     'group_replication_group_name', 'group_replication_single_primary_mode', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', \
     'binlog_format', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')";

/// The server's settings.
pub(crate) struct Variables(HashMap<String, String>);

impl Variables {
    pub(crate) async fn ask(connection: &mut Conn) -> Result<Self, mysql_async::Error> {
        let rows: Vec<(String, String)> = connection.query(QUESTION).await?;
        Ok(Self(rows.into_iter().collect()))
    }

    /// A setting; empty if this server does not know it.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).eq_ignore_ascii_case("ON") || self.get(name) == "1"
    }

    /// Whether this is MariaDB, and not MySQL.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.get("version").contains("MariaDB")
    }

    /// Refuses servers on which two clients could get one lock.
    pub(crate) fn check(&self, server: &str) -> Result<(), BackendError> {
        let refuse = |kind, what: &str, remedy: &str| {
            Err(error::new(kind, Effect::None, format!("{server} {what}")).with_remedy(remedy))
        };
        if self.is_on("wsrep_on") {
            let remedy =
                "use a server that replicates from one primary: a Galera cluster grants one lock on two servers";
            return refuse(ErrorKind::Config, "belongs to a Galera cluster", remedy);
        }
        if !self.get("group_replication_group_name").is_empty() && !self.is_on("group_replication_single_primary_mode")
        {
            let remedy = "use single-primary mode: with several primaries, two of them grant one lock";
            return refuse(ErrorKind::Config, "replicates in a group with several primaries", remedy);
        }
        if self.is_on("read_only") || self.is_on("super_read_only") {
            let remedy = "name the primary, or all servers: one of them accepts writes";
            return refuse(ErrorKind::Unavailable, "is a replica, or read-only", remedy);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(settings: &[(&str, &str)]) -> String {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Variables(settings.collect()).check("db:3306").err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn servers_that_grant_a_lock_twice_are_refused_by_name() {
        assert!(refusal(&[("wsrep_on", "ON")]).contains("Galera"));
        let group = ("group_replication_group_name", "aaaa");
        assert!(refusal(&[group, ("group_replication_single_primary_mode", "OFF")]).contains("several primaries"));
        assert_eq!(refusal(&[group, ("group_replication_single_primary_mode", "ON"), ("read_only", "OFF")]), "");
        assert!(refusal(&[("read_only", "ON")]).contains("read-only"));
    }
}
