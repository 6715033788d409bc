//! The one Redis, and the faults that only it has.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stress::check::Loss;
use stress::history::now;
use stress::nemesis::{Effect, Server};
use test_support::{DataCopy, RedisServer};

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Own {
    FlushScripts,
    KillClients,
    KillSubscribers,
    FillMemory,
    RestartEmpty,
    RestartFromOldFile,
    FlushAll,
}

/// The server, and when it forgot.
pub(crate) struct Redis {
    pub(crate) server: RedisServer,
    pub(crate) losses: Vec<Loss>,
    old_file: DataCopy,
}

impl Redis {
    /// The old file is that of now.
    pub(crate) fn of(server: RedisServer) -> Self {
        let old_file = server.copy_data();
        Self { server, losses: Vec::new(), old_file }
    }

    fn kill_clients(&self, kind: &str) -> Effect {
        Effect::Times(self.server.command(&["CLIENT", "KILL", "TYPE", kind]))
    }

    fn lose(&mut self, lose: impl FnOnce(&mut RedisServer, &DataCopy)) -> Effect {
        // Tokens of before count up from an earlier reading of the server's clock, and never as fast as it runs.
        let watermark = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros().try_into().unwrap();
        lose(&mut self.server, &self.old_file);
        self.losses.push(Loss { at: now(), watermark, lock: None });
        Effect::Times(1)
    }

    fn info(&self, section: &str, start: &str) -> u64 {
        let info: String = self.server.command(&["INFO", section]);
        info.lines().find_map(|line| line.strip_prefix(start)).map_or(0, |value| value.trim().parse().unwrap())
    }
}

impl Server for Redis {
    type Own = Own;
    const OWN: &'static [Own] = &[
        Own::FlushScripts,
        Own::KillClients,
        Own::KillSubscribers,
        Own::FillMemory,
        Own::RestartEmpty,
        Own::RestartFromOldFile,
        Own::FlushAll,
    ];
    const SUSPENDED_FOR: Range<Duration> = Duration::from_millis(100)..Duration::from_millis(600);

    fn notes(&self, lock: &str) -> Vec<String> {
        // If several hold it, the value does not say who.
        let together: Vec<String> = self.server.command(&["HVALS", &format!("leasehold:{{{lock}}}:s")]);
        if !together.is_empty() {
            return together;
        }
        let alone: Option<String> = self.server.command(&["GET", lock]);
        alone.into_iter().collect()
    }

    fn suspend(&mut self) {
        self.server.stop();
    }

    fn resume(&mut self) {
        self.server.resume();
    }

    fn restart_with_data(&mut self) {
        self.server.restart_with_data();
    }

    fn begin(&mut self, own: Own) -> Effect {
        match own {
            Own::FlushScripts => {
                let known = self.info("memory", "number_of_cached_scripts:");
                self.server.command::<()>(&["SCRIPT", "FLUSH"]);
                Effect::Times(known)
            }
            Own::KillClients => self.kill_clients("normal"),
            Own::KillSubscribers => self.kill_clients("pubsub"),
            Own::FillMemory => {
                self.server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
                Effect::Lasts
            }
            Own::RestartEmpty => self.lose(|server, _| server.restart_empty()),
            Own::RestartFromOldFile => self.lose(RedisServer::restart_from),
            Own::FlushAll => self.lose(|server, _| server.command::<()>(&["FLUSHALL"])),
        }
    }

    /// Only full memory lasts.
    fn end(&mut self, _: Own) -> u64 {
        let refused = self.info("errorstats", "errorstat_OOM:count=");
        self.server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        refused
    }
}
