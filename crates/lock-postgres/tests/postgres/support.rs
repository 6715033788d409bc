//! What the tests share: a server, schemas of their own, broken twins of the functions, and gates where one client is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Certainty, Claim, EventSink, Fairness, Lease, Mode, NameKind, Note,
    Owner, Queueing, ReleaseRequest, Released, StoreEvent, Terms, Ttl, Width,
};
use lock_host::Bridge;
use lock_postgres::{PostgresConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{PostgresOptions, PostgresServer, Shared};
use tokio_postgres::types::{FromSqlOwned, Type};
use tokio_postgres::{Config, NoTls};

/// How long a request may take that is expected to be answered.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// How long a request may take that is expected to be in vain.
pub(crate) const SHORT: Duration = Duration::from_millis(500);
/// A lease that ends while a test looks on.
pub(crate) const BRIEF: Duration = Duration::from_secs(2);

const SCHEMA: &str = include_str!("../../src/schema.sql");

/// A client of the store; each call returns within the time that it is given.
pub(crate) type Client = Arc<dyn BlockingBackend>;

/// The server that tests share which break nothing of it.
pub(crate) fn server() -> Arc<PostgresServer> {
    static SERVER: Shared<PostgresServer> = Shared::new();
    SERVER.get(|| PostgresServer::start_with(PostgresOptions::default().volatile()))
}

/// A schema of the shared server that one test uses.
pub(crate) struct Place {
    pub(crate) server: Arc<PostgresServer>,
    pub(crate) schema: String,
}

impl Place {
    /// A new schema, with the tables and functions as clients make them.
    pub(crate) fn new() -> Self {
        Self::twin(&[])
    }

    /// The same, with changes to the functions: each fragment is replaced by what follows it.
    pub(crate) fn twin(changes: &[(&str, &str)]) -> Self {
        static PLACES: AtomicU64 = AtomicU64::new(0);
        let schema = format!("place_{}", PLACES.fetch_add(1, Ordering::SeqCst));
        let server = server();
        make_twin(&server, &schema, changes);
        Self { server, schema }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}&schema={}", self.server.url(), self.schema)
    }

    pub(crate) fn config(&self) -> PostgresConfig {
        PostgresConfig::from_url(&self.url()).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        client(&self.url())
    }

    /// A connection of a user of the database, to whom the schema is the first place to look for names.
    pub(crate) fn session(&self) -> Session {
        let session = Session::connect(&self.server.url());
        session.run(&format!("SET search_path = {}, public", self.schema)).unwrap();
        session
    }
}

/// Makes a schema whose functions are those of clients but for some changes.
pub(crate) fn make_twin(server: &PostgresServer, schema: &str, changes: &[(&str, &str)]) {
    let mut script = SCHEMA.to_owned();
    for (fragment, replacement) in changes {
        assert!(script.contains(fragment), "the functions have no such part: {fragment}");
        script = script.replace(fragment, replacement);
    }
    let script = script
        .replace("leasehold.", &format!("{schema}."))
        .replace("SCHEMA leasehold", &format!("SCHEMA {schema}"))
        .replace("SCHEMA IF NOT EXISTS leasehold", &format!("SCHEMA IF NOT EXISTS {schema}"));
    Session::connect(&server.url()).run(&script).unwrap();
}

/// Connects; on a busy machine, one attempt may have too little time.
pub(crate) fn client(url: &str) -> Client {
    let config = PostgresConfig::from_url(url).unwrap();
    Arc::new(wait_for("a connection", || blocking::connect(&config)))
}

/// A connection of our own. The server ends each statement that takes too long.
pub(crate) struct Session {
    bridge: Bridge,
    pub(crate) client: tokio_postgres::Client,
}

impl Session {
    pub(crate) fn connect(url: &str) -> Self {
        let (bridge, config) = (Bridge::start().unwrap(), url.parse::<Config>().unwrap());
        let client = wait_for("a session", || {
            bridge.block_on(async {
                let (client, connection) = config.connect(NoTls).await?;
                tokio::spawn(connection);
                client.batch_execute("SET statement_timeout = '50s'").await?;
                Ok::<_, tokio_postgres::Error>(client)
            })
        });
        Self { bridge, client }
    }

    /// Runs statements that return nothing of interest.
    pub(crate) fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.bridge.block_on(self.client.batch_execute(sql))
    }

    /// The one value that a query returns.
    #[track_caller]
    pub(crate) fn value<T: FromSqlOwned>(&self, sql: &str) -> T {
        let rows = self.bridge.block_on(self.client.query_typed(sql, &[])).unwrap();
        rows.first().unwrap_or_else(|| panic!("no row: {sql}")).get(0)
    }

    /// Fences the transaction that is open, as a user of any driver does.
    pub(crate) fn fence(&self, name: &str, token: u64) -> Result<(), tokio_postgres::Error> {
        let token = token.cast_signed();
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&name, Type::TEXT), (&token, Type::INT8)];
        self.bridge.block_on(self.client.query_typed("SELECT fence($1, $2)", &parameters)).map(drop)
    }

    /// Begins a transaction that is fenced.
    pub(crate) fn begin(&self, name: &str, token: u64) -> Result<(), tokio_postgres::Error> {
        self.run("BEGIN")?;
        self.fence(name, token).inspect_err(|_| self.run("ROLLBACK").unwrap())
    }

    pub(crate) fn pid(&self) -> i32 {
        self.value("SELECT pg_backend_pid()")
    }
}

/// Waits until a session of this process id waits for another one.
pub(crate) fn wait_until_blocked(watcher: &Session, pid: i32) {
    let blocked = format!("SELECT cardinality(pg_blocking_pids({pid})) > 0");
    wait_for("a session waits for another one", || watcher.value::<bool>(&blocked));
}

/// Waits until somebody waits for a session of this process id.
pub(crate) fn blocks_another(watcher: &Session, pid: i32) {
    let blocks = format!("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid)))");
    wait_for("somebody waits for a session", || watcher.value::<bool>(&blocks));
}

/// The code of an error of the server.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, tokio_postgres::Error>) -> String {
    let error = result.expect_err("it is refused");
    error.code().unwrap_or_else(|| panic!("{error:?}")).code().to_owned()
}

/// What a fragment of a function becomes so that the first one that comes there stops while the gate is closed. The others pass.
pub(crate) const GATE: &str = "IF pg_try_advisory_xact_lock(hashtext('leasehold.gate'), 1) THEN \
     PERFORM pg_advisory_xact_lock_shared(hashtext('leasehold.gate'), 2); END IF; ";

/// A gate that is closed until this is dropped.
pub(crate) struct Gate(Session, String);

impl Gate {
    pub(crate) fn close(place: &Place) -> Self {
        let (session, key) = (place.session(), format!("hashtext('{}.gate')", place.schema));
        session.run(&format!("SELECT pg_advisory_lock({key}, 2)")).unwrap();
        Self(session, key)
    }

    /// Waits until somebody stands before it.
    pub(crate) fn wait_for_one(&self) {
        let waits = format!(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = ({}::bigint & 4294967295)::oid)",
            self.1
        );
        wait_for("somebody stands before the gate", || self.0.value::<bool>(&waits));
    }

    pub(crate) fn open(self) {
        self.0.run("SELECT pg_advisory_unlock_all()").unwrap();
    }
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

pub(crate) fn claim(name: &str) -> Claim {
    Claim {
        name: name.parse().unwrap(),
        owner: new_owner(),
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

pub(crate) fn new_owner() -> Owner {
    lock_host::new_owner().unwrap()
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

/// A client's events from now on.
pub(crate) fn events_of(client: &(impl Backend + ?Sized)) -> Receiver<StoreEvent> {
    let (tell, told) = channel();
    client.listen(EventSink::new(move |event| _ = tell.send(event)));
    told
}

/// Waits until a client is notified that a waiter of its own has the lock.
#[track_caller]
pub(crate) fn is_told(told: &Receiver<StoreEvent>, waiter: &Claim) {
    let is_grant = |event| matches!(event, StoreEvent::Granted { lease, .. } if lease.owner == waiter.owner);
    wait_for("the news of a grant", || told.try_iter().any(is_grant));
}

pub(crate) fn low(lease: &Lease) -> u64 {
    lease.tokens.low().get()
}

/// Who ends the leases of others.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}
