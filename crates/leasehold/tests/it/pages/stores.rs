//! The table in `docs/book/src/kinds.md` of what works on which store: written from what the stores say of themselves, and tried on each. To
//! rewrite it, run this test with `LEASEHOLD_BLESS=1`, and review the difference.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it cannot go on")]

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use leasehold::backend::{Ability, Capabilities, Durability, ModeKind, Reach, Waiting};
use leasehold::blocking::{Client, Kit};
use leasehold::error::{LimitError, Unchanged};
use leasehold::kit::JobError;
use leasehold::latch::LatchError;
use leasehold::redlock::{Purpose, RedlockConfig};
use leasehold::{AcquireError, BackendConfig, BackendError, ErrorKind, HoldError};
use test_support::{EtcdServer, MysqlServer, PostgresServer, RedisServer, ZookeeperServer};

const BEGIN: &str = "<!-- stores: written by the tests of leasehold -->\n";
const END: &str = "<!-- stores: end -->\n";
const WITHIN: Duration = Duration::from_secs(20);

/// Something that may work on a store.
struct Kind {
    what: &'static str,
    needs: Need,
    /// Does it, and gives the error of the store.
    tried: fn(&Client) -> Result<(), BackendError>,
}

/// What it needs of a store.
enum Need {
    Mode(ModeKind),
    Ability(Ability),
    /// Something that a backend has or has not.
    Part,
}

const KINDS: [Kind; 9] = [
    Kind {
        what: "`mutex`, `all`, `reentrant`, `degrading`, `election`, `single_flight`, `#[locked]`, `job` without slots",
        needs: Need::Mode(ModeKind::Exclusive),
        tried: |locks| locks.all(["a", "b"]).acquire().map(drop).map_err(|error| panic!("{error}")),
    },
    Kind {
        what: "`rw_lock`",
        needs: Need::Mode(ModeKind::Shared),
        tried: |locks| locks.rw_lock("shared").read().acquire().map(drop).map_err(refused),
    },
    Kind {
        what: "`semaphore`",
        needs: Need::Mode(ModeKind::Permits),
        tried: |locks| locks.semaphore("permits", 2).acquire().map(drop).map_err(refused),
    },
    Kind {
        what: "`set_limit`, `available_permits`",
        needs: Need::Ability(Ability::SetLimit),
        tried: |locks| match locks.semaphore("limit", 2).available_permits() {
            Ok(_) => Ok(()),
            Err(LimitError::Backend(error)) => Err(error),
            Err(error) => panic!("{error}"),
        },
    },
    Kind {
        what: "`detach`, `adopt`, `downgrade`, `try_upgrade`, `give_back`",
        needs: Need::Ability(Ability::Replace),
        tried: |locks| match locks.mutex("ticket").acquire().unwrap().detach() {
            Ok(_) => Ok(()),
            Err(error) => {
                let Unchanged::Refused(reason) = error.reason() else { panic!("{error}") };
                Err(refused(reason.clone()))
            }
        },
    },
    Kind {
        what: "`release_keeping`",
        needs: Need::Ability(Ability::Keep),
        tried: |locks| match locks.mutex("kept").acquire().unwrap().release_keeping(WITHIN) {
            Ok(()) => Ok(()),
            Err(HoldError::Backend(error)) => Err(error),
            Err(error) => panic!("{error}"),
        },
    },
    Kind {
        what: "`job` with `slot` or `at_least`",
        needs: Need::Ability(Ability::Keep),
        tried: |locks| {
            let plain = locks.job("job");
            let slotted = plain.clone().slot("2099-11-21T03:00".parse().unwrap()).run(|_| ()).map(drop);
            let kept = plain.at_least(WITHIN).run(|_| ()).map(drop);
            assert_eq!(slotted.is_ok(), kept.is_ok());
            match slotted {
                Ok(()) => Ok(()),
                Err(JobError::Acquire(error)) => Err(refused(error)),
                Err(error) => panic!("{error}"),
            }
        },
    },
    Kind {
        what: "`barging`",
        needs: Need::Ability(Ability::Barge),
        tried: |locks| locks.rw_lock("barged").read().barging().acquire().map(drop).map_err(refused),
    },
    Kind {
        what: "`latch`",
        needs: Need::Part,
        tried: |locks| match locks.latch("latch").arrive() {
            Ok(_) => Ok(()),
            Err(LatchError::Backend(error)) => Err(error),
            Err(error) => panic!("{error}"),
        },
    },
];

fn refused(error: AcquireError) -> BackendError {
    let AcquireError::Backend(error) = error else { panic!("{error}") };
    error
}

/// Whether it works, as the store says and as it does.
fn works(kind: &Kind, locks: &Client) -> bool {
    let tried = (kind.tried)(locks);
    if let Err(error) = &tried {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{}: {error}", kind.what);
    }
    let Capabilities { backend, modes, abilities, .. } = locks.capabilities();
    let said = match kind.needs {
        Need::Mode(mode) => modes.contains(&mode),
        Need::Ability(ability) => abilities.contains(&ability),
        Need::Part => tried.is_ok(),
    };
    assert_eq!(tried.is_ok(), said, "{backend}: {}", kind.what);
    said
}

fn yes(works: bool) -> &'static str {
    if works { "yes" } else { "no" }
}

fn served(locks: &Client) -> &'static str {
    match locks.capabilities().waiting {
        Waiting::QueueWithPush | Waiting::Queue => "yes",
        Waiting::Poll => "no",
        other => panic!("{other:?} has no words yet"),
    }
}

fn rise(locks: &Client) -> &'static str {
    match locks.capabilities().durability {
        Durability::Durable => "yes",
        Durability::ClockFloor => "by clock",
        Durability::ByOperator => "by operator",
        Durability::Process => "no",
        other => panic!("{other:?} has no words yet"),
    }
}

fn reach(url: &str) -> &'static str {
    match BackendConfig::from_url(url).unwrap().reach() {
        Reach::Process => "process",
        Reach::Machine => "machine",
        Reach::Network => "network",
    }
}

/// A row of the table: what it is about, and a cell for each store.
struct Row {
    about: String,
    cells: Vec<&'static str>,
}

/// What all stores support alike is one row.
fn merged(kinds: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for kind in kinds {
        match rows.iter_mut().find(|row| row.cells == kind.cells) {
            Some(row) => write!(row.about, ", {}", kind.about).unwrap(),
            None => rows.push(kind),
        }
    }
    rows
}

fn table(stores: &[(&str, &str)]) -> String {
    let stores: Vec<_> =
        stores.iter().map(|(name, url)| (*name, *url, leasehold::blocking::connect(url).unwrap())).collect();
    let row = |about: &str, cell: &dyn Fn(&Client) -> &'static str| Row {
        about: about.to_owned(),
        cells: stores.iter().map(|(.., locks)| cell(locks)).collect(),
    };
    let reach = Row { about: "reach".to_owned(), cells: stores.iter().map(|(_, url, _)| reach(url)).collect() };
    let inspect = row("`inspect`, `leasehold ls`", &|locks| yes(locks.inspect().is_some()));
    let kinds = KINDS.iter().map(|kind| row(kind.what, &|locks| yes(works(kind, locks))));
    let mut rows = vec![reach];
    rows.extend(merged(kinds.chain([inspect])));
    rows.push(row("waiters are served in order", &served));
    rows.push(row("tokens rise after a loss of data", &rise));
    let mut text = "| |".to_owned();
    stores.iter().for_each(|(name, ..)| write!(text, " `{name}` |").unwrap());
    writeln!(text, "\n|---|{}", "---|".repeat(stores.len())).unwrap();
    rows.iter().for_each(|row| writeln!(text, "| {} | {} |", row.about, row.cells.join(" | ")).unwrap());
    text
}

/// Three servers that form a deployment, and its URL.
fn quorum() -> (Vec<RedisServer>, String) {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let hosts: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let url = format!("redlock://{}?max_ttl=40s", hosts.join(","));
    let config = RedlockConfig::from_url(&url).unwrap();
    leasehold::redlock::blocking::open(&config).unwrap().pass(Purpose::Init, WITHIN).unwrap();
    (servers, url)
}

#[test]
fn the_table_of_stores_is_what_they_say_and_do() {
    let (folder, server, (_nodes, redlock)) = (test_support::temp_dir(), RedisServer::start(), quorum());
    let sqlite = format!("sqlite:{}", folder.path().join("locks.db").display());
    let (postgres, mysql) = (PostgresServer::start(), MysqlServer::start());
    let (zookeeper, etcd) = (ZookeeperServer::start(), EtcdServer::start());
    let stores = [
        ("memory:", "memory:"),
        ("sqlite:", &sqlite),
        ("postgres:", &postgres.url()),
        ("mysql:", &mysql.url()),
        ("zookeeper:", &format!("zookeeper://{}", zookeeper.address())),
        ("etcd:", &etcd.url()),
        ("redis:", &server.url()),
        ("redlock:", &redlock),
    ];
    let table = table(&stores);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/kinds.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (there, after) = rest.split_once(END).unwrap();
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(there, table, "if the change is meant, run this test with LEASEHOLD_BLESS=1");
    }
}
