//! What a server of a cluster says about itself and the others.

use std::thread;
use std::time::Duration;

use crate::redis_answers::ask;
use crate::sentinels::PASSWORDS;
use crate::{RedisOptions, RedisServer};

/// How long a server may be silent before the others say that it failed. Chosen: nothing fails by itself on a loaded machine.
const CALM: Duration = Duration::from_secs(10);

/// What a server knows of another one.
pub(crate) struct Row {
    pub(crate) port: u16,
    pub(crate) flags: String,
    pub(crate) primary: String,
    pub(crate) hash_slots: Vec<(u16, u16)>,
}

/// The name of a server in its cluster.
pub(crate) fn id(server: &RedisServer) -> String {
    server.command(&["CLUSTER", "MYID"])
}

/// Whether a server says that the cluster works; nothing if it does not answer.
pub(crate) fn works(server: &RedisServer) -> Option<bool> {
    let told: String = ask(server, &["CLUSTER", "INFO"])?;
    Some(told.contains("cluster_state:ok"))
}

/// What a server knows of all servers.
pub(crate) fn rows(server: &RedisServer) -> Option<Vec<Row>> {
    ask::<String>(server, &["CLUSTER", "NODES"])?.lines().map(row).collect()
}

/// Reads `ID HOST:PORT@BUS,... FLAGS PRIMARY PING PONG EPOCH LINK SLOTS...`.
fn row(line: &str) -> Option<Row> {
    let words: Vec<_> = line.split(' ').collect();
    let [_, address, flags, primary, _, _, _, _, slots @ ..] = &words[..] else { return None };
    let port = address.split('@').next()?.rsplit(':').next()?.parse().ok()?;
    let range = |text: &&str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    // Those that migrate are listed a second time, in brackets.
    let hash_slots = slots.iter().filter(|text| !text.starts_with('[')).map(range).collect::<Option<_>>()?;
    Some(Row { port, flags: (*flags).to_owned(), primary: (*primary).to_owned(), hash_slots })
}

/// Whether a hash slot is in one of these ranges.
pub(crate) fn contains(ranges: &[(u16, u16)], hash_slot: u16) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&hash_slot))
}

/// Starts servers that do not know each other yet.
pub(crate) fn start(count: usize, options: RedisOptions) -> Vec<RedisServer> {
    let calm = CALM.as_millis().to_string();
    let arguments = ["--masterauth", PASSWORDS.0, "--repl-diskless-sync-delay", "0", "--cluster-node-timeout", &calm];
    // A replica that was cut off may replace its primary as well: the tests show what that costs.
    let arguments = [&arguments[..], &["--cluster-replica-validity-factor", "0"]].concat();
    let options = options.clustered().require_password(PASSWORDS.0).arguments(&arguments);
    thread::scope(|scope| {
        let starting: Vec<_> = (0..count).map(|_| scope.spawn(|| RedisServer::start_with(options.clone()))).collect();
        starting.into_iter().map(|server| server.join().unwrap_or_else(|_| panic!("a server did not start"))).collect()
    })
}
