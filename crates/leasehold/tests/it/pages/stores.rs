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

const KINDS: [Kind; 8] = [
    Kind {
        what: "`mutex`, `all`, `reentrant`, `degrading`, `election`, `single_flight`, `#[locked]`, and `job` without slots",
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
        what: "`set_limit` and `available_permits` of a semaphore",
        needs: Need::Ability(Ability::SetLimit),
        tried: |locks| match locks.semaphore("limit", 2).available_permits() {
            Ok(_) => Ok(()),
            Err(LimitError::Backend(error)) => Err(error),
            Err(error) => panic!("{error}"),
        },
    },
    Kind {
        what: "`detach` and `adopt`; `downgrade`, `try_upgrade`, `give_back`",
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
        what: "`slot` and `at_least` of a job",
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
        Waiting::QueueWithPush => "in line, told at once",
        Waiting::Queue => "in line, asks again",
        Waiting::Poll => "no line, asks again",
        other => panic!("{other:?} has no words yet"),
    }
}

fn rise(locks: &Client) -> &'static str {
    match locks.capabilities().durability {
        Durability::Durable => "yes",
        Durability::ClockFloor => "if its clock is not set back",
        Durability::ByOperator => "once an operator has raised them",
        Durability::Process => "no",
        other => panic!("{other:?} has no words yet"),
    }
}

fn reach(url: &str) -> &'static str {
    match BackendConfig::from_url(url).unwrap().reach() {
        Reach::Process => "one process",
        Reach::Machine => "one machine",
        Reach::Network => "all machines that reach it",
    }
}

fn table(stores: &[(&str, &str)]) -> String {
    let stores = stores.iter().map(|(name, url)| (name, url, leasehold::blocking::connect(url).unwrap()));
    let stores: Vec<_> = stores.collect();
    let mut text = "| |".to_owned();
    stores.iter().for_each(|(name, ..)| write!(text, " `{name}` |").unwrap());
    writeln!(text, "\n|---|{}", "---|".repeat(stores.len())).unwrap();
    write!(text, "| excludes the clients of |").unwrap();
    stores.iter().for_each(|(_, url, _)| write!(text, " {} |", reach(url)).unwrap());
    text.push('\n');
    let mut row = |what: &str, cell: &dyn Fn(&Client) -> &'static str| {
        write!(text, "| {what} |").unwrap();
        stores.iter().for_each(|(.., locks)| write!(text, " {} |", cell(locks)).unwrap());
        text.push('\n');
    };
    KINDS.iter().for_each(|kind| row(kind.what, &|locks| yes(works(kind, locks))));
    row("`inspect`; `leasehold ls` and `show`", &|locks| yes(locks.inspect().is_some()));
    row("who waits for a lock", &served);
    row("tokens rise after the store has lost its data", &rise);
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
