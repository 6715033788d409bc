//! What the tests share: a server, databases of their own, broken twins of the procedures, and what clients say.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Effect, ErrorKind, Fairness, Lease, Mode, NameKind, Note,
    Queueing, ReleaseRequest, Released, StoreConfig, Terms, Ttl, Width,
};
use lock_mysql::{MysqlConfig, blocking};
use mysql::prelude::{FromValue, Queryable};
use mysql::{Opts, OptsBuilder};
use test_support::bounds::wait_for;
use test_support::{MysqlOptions, MysqlServer, Product, Shared};

/// How long a request may take that is expected to be answered.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// How long a request may take that is expected to be in vain.
pub(crate) const SHORT: Duration = Duration::from_secs(1);
/// A lease that ends while a test looks on.
pub(crate) const BRIEF: Duration = Duration::from_secs(1);

const SCHEMA: &str = include_str!("../../src/schema.sql");
/// The server shows transactions as they were when somebody looked, unless nobody has looked for a tenth of a second.
const LOOK_EVERY: Duration = Duration::from_millis(120);

/// What has different names in the two products. If one of them lacks it, this is what comes nearest.
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    pub(crate) odd_sql_mode: &'static str,
    /// Upper and lower case are equal in it, and spaces at the end are not ignored.
    pub(crate) odd_collation: &'static str,
    /// Variables of a careful operator.
    pub(crate) careful: &'static [&'static str],
    /// Makes locking reads of a session fail if rows have changed since its transaction began.
    pub(crate) strict_snapshots: &'static str,
    pub(crate) switch_semi_sync_on: &'static str,
    /// What the server tells unknown users. MySQL asks some of them for an unusual authentication plugin.
    pub(crate) unknown_user: &'static str,
    /// Variables of a server that is one of several primaries, and what clients call it.
    pub(crate) several_primaries: (&'static [&'static str], &'static str),
    /// Variables that make a server refuse writes.
    pub(crate) read_only: &'static [&'static str],
}

const MARIADB: Dialect = Dialect {
    name: "MariaDB",
    odd_sql_mode: "ORACLE",
    odd_collation: "utf8mb4_unicode_nopad_ci",
    careful: &["max_statement_time=5", "innodb_snapshot_isolation=ON", "innodb_force_primary_key=ON"],
    strict_snapshots: "SET innodb_snapshot_isolation = ON",
    switch_semi_sync_on: "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    unknown_user: "Access denied",
    several_primaries: (
        &["wsrep-on=ON", "wsrep-provider=none", "wsrep-cluster-address=gcomm://", "binlog-format=ROW"],
        "belongs to a Galera cluster",
    ),
    read_only: &["read_only"],
};

const MYSQL: Dialect = Dialect {
    name: "MySQL",
    odd_sql_mode: "ANSI",
    odd_collation: "utf8mb4_0900_ai_ci",
    careful: &["max_execution_time=5000", "sql_require_primary_key=ON"],
    // It has no such setting.
    strict_snapshots: "",
    switch_semi_sync_on: "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; \
                          SET GLOBAL rpl_semi_sync_source_enabled = ON",
    unknown_user: "",
    several_primaries: (
        &[
            "plugin-load-add=group_replication.so",
            "group-replication-group-name=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
            "group-replication-single-primary-mode=OFF",
            "group-replication-start-on-boot=OFF",
        ],
        "group with several primaries",
    ),
    read_only: &["read_only", "super_read_only"],
};

/// That of the server that this run tests.
pub(crate) fn dialect() -> &'static Dialect {
    match Product::tested() {
        Product::Mariadb => &MARIADB,
        Product::Mysql => &MYSQL,
    }
}

/// A client of the store; each call returns within the time that it is given.
pub(crate) type Client = Arc<dyn BlockingBackend>;

/// A server whose data outlives only the server, and not the machine.
pub(crate) fn new_server() -> MysqlServer {
    MysqlServer::start_with(MysqlOptions::default().volatile())
}

/// The server that tests share which break nothing of it.
pub(crate) fn server() -> Arc<MysqlServer> {
    static SERVER: Shared<MysqlServer> = Shared::new();
    SERVER.get(new_server)
}

/// A database of the shared server that one test uses.
pub(crate) struct Place {
    pub(crate) server: Arc<MysqlServer>,
    pub(crate) url: String,
}

impl Place {
    /// A new database without tables: the first client makes them.
    pub(crate) fn empty() -> Self {
        let server = server();
        let url = server.new_database();
        Self { server, url }
    }

    /// A new database, with the tables and procedures as clients make them.
    pub(crate) fn new() -> Self {
        let place = Self::empty();
        place.client();
        place
    }

    /// The same, with changes to the procedures: each fragment is replaced by what follows it.
    pub(crate) fn twin(changes: &[(&str, &str)]) -> Self {
        let (place, mut script) = (Self::empty(), SCHEMA.to_owned());
        for (fragment, replacement) in changes {
            assert!(script.contains(fragment), "the procedures have no such part: {fragment}");
            script = script.replace(fragment, replacement);
        }
        place.server.execute_in(place.database(), &script);
        place
    }

    pub(crate) fn database(&self) -> &str {
        database_of(&self.url)
    }

    pub(crate) fn config(&self) -> MysqlConfig {
        MysqlConfig::from_url(&self.url).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        client(&self.url)
    }

    pub(crate) fn locks(&self) -> lock_blocking::Client {
        locks(&self.url)
    }

    /// A connection of a user of the database.
    pub(crate) fn session(&self) -> Session {
        Session::connect(&self.url)
    }

    /// A connection that sees the transactions of all users.
    pub(crate) fn watcher(&self) -> Session {
        let socket: String = self.session().value("SELECT @@socket");
        Session::of(OptsBuilder::default().socket(Some(socket)).user(Some("root")))
    }
}

pub(crate) fn database_of(url: &str) -> &str {
    url.rsplit_once('/').unwrap().1.split('?').next().unwrap()
}

/// Connects; on a busy machine, one attempt may have too little time.
pub(crate) fn client(url: &str) -> Client {
    let config = MysqlConfig::from_url(url).unwrap();
    Arc::new(wait_for("a connection", || blocking::connect(&config)))
}

/// The same, as users see it.
pub(crate) fn locks(url: &str) -> lock_blocking::Client {
    let config = MysqlConfig::from_url(url).unwrap();
    let backend = Arc::new(wait_for("a connection", || blocking::connect(&config)));
    lock_blocking::Client::builder(backend).op_timeout(config.op_timeout()).build().unwrap()
}

/// What a driver connects with, which does not understand what this library does.
pub(crate) fn driver_opts(url: &str) -> Opts {
    Opts::from_url(url.split('?').next().unwrap()).unwrap()
}

/// A connection of our own. Each statement ends, in vain if it takes too long.
pub(crate) struct Session(pub(crate) RefCell<mysql::Conn>);

impl Session {
    pub(crate) fn connect(url: &str) -> Self {
        Self::of(OptsBuilder::from_opts(driver_opts(url)))
    }

    fn of(options: OptsBuilder) -> Self {
        let options: Opts = options.prefer_socket(false).read_timeout(Some(Duration::from_secs(50))).into();
        Self(RefCell::new(wait_for("a session", || mysql::Conn::new(options.clone()))))
    }

    /// Runs statements that return nothing of interest, until one fails, be it behind the first row. None has a semicolon in a text.
    pub(crate) fn run(&self, sql: &str) -> Result<(), mysql::Error> {
        let mut statements = sql.split(';').map(str::trim).filter(|statement| !statement.is_empty());
        statements.try_for_each(|statement| self.0.borrow_mut().query::<mysql::Row, _>(statement).map(drop))
    }

    /// The one value that a query returns.
    #[track_caller]
    pub(crate) fn value<T: FromValue>(&self, sql: &str) -> T {
        let row: Option<T> = self.0.borrow_mut().query_first(sql).unwrap();
        row.unwrap_or_else(|| panic!("no row: {sql}"))
    }

    /// Fences the transaction that is open, as a user of any driver does.
    pub(crate) fn fence(&self, name: &str, token: u64) -> Result<(), mysql::Error> {
        self.0.borrow_mut().exec_drop("CALL leasehold_fence(?, ?)", (name, token))
    }

    /// Begins a transaction that is fenced.
    pub(crate) fn begin(&self, name: &str, token: u64) -> Result<(), mysql::Error> {
        self.run("START TRANSACTION")?;
        self.fence(name, token).inspect_err(|_| self.run("ROLLBACK").unwrap())
    }

    /// Whether a transaction is open: a savepoint is gone at once without one.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.run("SAVEPOINT probe").unwrap();
        match self.run("RELEASE SAVEPOINT probe") {
            Err(mysql::Error::MySqlError(told)) if told.code == 1305 => false,
            answer => answer.map(|()| true).unwrap(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.borrow().connection_id()
    }
}

/// Whether the server's tables of transactions say so. All look in turn, so that none sees what an earlier one saw.
fn is_seen(watcher: &Session, question: &str) -> bool {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    thread::sleep(LOOK_EVERY);
    watcher.value(question)
}

/// Waits until a session of this id waits for another one.
pub(crate) fn wait_until_blocked(watcher: &Session, id: u32) {
    let blocked = format!(
        "SELECT EXISTS (SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = {id} AND trx_state = 'LOCK WAIT')"
    );
    wait_for("a session waits for another one", || is_seen(watcher, &blocked));
}

/// The SQLSTATE of an error of the server.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, mysql::Error>) -> String {
    let error = result.expect_err("it is refused");
    let mysql::Error::MySqlError(told) = error else { panic!("{error:?}") };
    told.state
}

/// What another thread does meanwhile.
pub(crate) fn meanwhile<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::spawn(work)
}

/// What became of it.
#[track_caller]
pub(crate) fn end<T>(work: thread::JoinHandle<T>) -> T {
    wait_for("the end of a thread", || work.is_finished());
    work.join().unwrap()
}

pub(crate) fn wait_for_the_end_of(ttl: Duration) {
    thread::sleep(ttl + Duration::from_millis(100));
}

pub(crate) fn claim(name: &str) -> Claim {
    Claim {
        name: name.parse().unwrap(),
        owner: lock_host::new_owner().unwrap(),
        terms: Terms::exclusive(Ttl::new(Duration::from_secs(60)).unwrap()),
        width: Width::ONE,
        floor: None,
        note: Note::new("here", 1, "testing").unwrap(),
        queueing: Queueing::Unwanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

pub(crate) fn waiting(name: &str) -> Claim {
    Claim { queueing: Queueing::Wanted, ..claim(name) }
}

pub(crate) fn lasting(ttl: Duration, claim: Claim) -> Claim {
    Claim { terms: Terms { ttl: Ttl::new(ttl).unwrap(), ..claim.terms }, ..claim }
}

pub(crate) fn permits(name: &str, count: u32, limit: u32) -> Claim {
    let width = Width::for_waiters(usize::try_from(count).unwrap());
    Claim { width, ..claim(name).in_mode(Mode::permits(count, limit).unwrap()) }
}

pub(crate) fn release_of(claim: &Claim) -> ReleaseRequest {
    claim.release(Certainty::Answered)
}

#[track_caller]
pub(crate) fn granted(answer: Result<Answer, BackendError>) -> Lease {
    match answer {
        Ok(Answer::Granted { lease, .. }) => lease,
        other => panic!("not granted: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn take(client: &Client, claim: &Claim) -> Lease {
    granted(client.acquire(claim, SOON))
}

/// The answer to a request that waits in vain for a fenced transaction. On a busy machine, its time may be over before.
#[track_caller]
pub(crate) fn is_told_of_a_fence<T: std::fmt::Debug>(request: impl Fn() -> Result<T, BackendError>) -> BackendError {
    let error = wait_for("an answer in time", || {
        let error = request().expect_err("it waits in vain");
        if error.kind() == ErrorKind::Timeout { Err(error) } else { Ok(error) }
    });
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error:?}");
    assert!(error.to_string().contains("a transaction that is fenced by this lease is still open"), "{error}");
    error
}

#[track_caller]
pub(crate) fn is_busy(answer: Result<Answer, BackendError>) {
    assert!(matches!(answer, Ok(Answer::Busy { .. })), "not busy: {answer:?}");
}

#[track_caller]
pub(crate) fn is_queued(answer: Result<Answer, BackendError>, at: u32) {
    assert!(matches!(answer, Ok(Answer::Queued { position, .. }) if position == at), "not queued at {at}: {answer:?}");
}

#[track_caller]
pub(crate) fn releases(client: &Client, claim: &Claim) {
    assert_eq!(client.release(&release_of(claim), SOON), Ok(Released::Released));
}

pub(crate) fn low(lease: &Lease) -> u64 {
    lease.tokens.low().get()
}

/// Who ends the leases of others.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}
