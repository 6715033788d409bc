//! A web service for invoices. Its locks and its data share a pool of Redis connections.
//!
//! | request | what it does |
//! |---|---|
//! | `POST /invoices/7/payment` | pays the invoice and answers with the receipt: once, however many servers are asked at once |
//! | `GET /invoices/7` | reads the text, and raises the fence first, for an editor that holds the lock `invoice:7` itself and sends its token |
//! | `PUT /invoices/7` | replaces the text, for the same editor |
//!
//! A port of its own, for administrators, shows who holds which lock.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a service reports to its terminal or its supervisor")]

use std::time::Duration;
use std::{env, io};

use axum::extract::{Extension, Path, Request, State};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, serve};
use deadpool_redis::{Config, Pool, PoolConfig, Runtime, Timeouts};
use leasehold::fence::http::FencingLayer;
use leasehold::fence::redis::{Fenced, FencedError};
use leasehold::{Client, FencingToken, FromRedis, WriteToken};
use leasehold_dashboard::Dashboard;
use redis::AsyncCommands;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

/// How long requests may go on after the service was asked to stop.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Clone)]
struct Invoices {
    pool: Pool,
    locks: Client,
    bank_takes: Duration,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let redis = setting("REDIS_URL", "redis://127.0.0.1");
    let pool = pool(&redis)?;
    let locks = Client::from_pool(pool.clone()).push(redis).connect().await?; // renews over connections of its own
    let bank_takes = Duration::from_millis(setting("BANK_TAKES_MS", "200").parse()?);
    let service = Invoices { pool, locks: locks.clone(), bank_takes };

    let admin = TcpListener::bind(setting("ADMIN", "127.0.0.1:8081")).await?;
    println!("the locks are shown at http://{}", admin.local_addr()?);
    let page = Dashboard::new(locks.clone()).store("invoices").router();
    // It ends with the process: an open page is a response without end, and would keep a graceful shutdown waiting.
    tokio::spawn(async { serve(admin, page).await });

    let (stop, late) = (asked_to_stop()?, asked_to_stop()?);
    let listener = TcpListener::bind(setting("LISTEN", "127.0.0.1:8080")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let server = serve(listener, routes(service)).with_graceful_shutdown(stop);
    tokio::select! {
        ended = server => ended?,
        () = async { late.await; sleep(GRACE).await } => eprintln!("some requests are given up"),
    }
    locks.close().await; // requests that are still in flight lose their locks, and nobody has to wait for the ttl
    Ok(())
}

fn setting(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn pool(redis: &str) -> anyhow::Result<Pool> {
    let limit = Some(Duration::from_secs(2));
    let timeouts = Timeouts { wait: limit, create: limit, recycle: limit };
    let config = Config { pool: Some(PoolConfig { timeouts, ..PoolConfig::default() }), ..Config::from_url(redis) };
    Ok(config.create_pool(Some(Runtime::Tokio1))?)
}

fn routes(service: Invoices) -> Router {
    // This process's layer does not know of requests to other ones: the fence that counts is the one in Redis.
    let text = get(read).put(write.layer(from_fn(in_time))).layer(FencingLayer::new(Default::default()));
    Router::new().route("/invoices/{invoice}", text).route("/invoices/{invoice}/payment", post(pay)).with_state(service)
}

/// Limits how long an editor may take to send a text, because the next one waits.
async fn in_time(request: Request, next: Next) -> Response {
    let answer = timeout(Duration::from_secs(5), next.run(request)).await;
    answer.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}

fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! { _ = terminate.recv() => (), _ = interrupt.recv() => () }
    })
}

/// The lock saves work: a request that waits finds the receipt, and does not ask the bank. The fence, which is raised before the
/// receipt is looked for, refuses a server that was suspended past its lease.
async fn pay(State(service): State<Invoices>, Path(invoice): Path<u64>) -> Result<String, Failure> {
    let lock = service.locks.mutex(format!("invoice:{invoice}")).wait(Duration::from_secs(10)).why("payment");
    lock.try_run_while_held(async |guard| {
        let (record, token) = (record(invoice)?, guard.fencing_token());
        let mut redis = service.pool.get().await?;
        record.raise(guard.write_token()).run_async(&mut redis).await?;
        if let Some(receipt) = record.hget(token, "receipt").run_async(&mut redis).await? {
            return Ok(receipt);
        }
        drop(redis); // the bank is slow, and others can use the connection meanwhile
        let receipt = service.ask_the_bank(invoice).await?;
        record.hset(token, &[("receipt", &receipt)]).run_async(&mut service.pool.get().await?).await?;
        Ok(receipt)
    })
    .await
}

/// If the request raises the fence, it is raised in Redis before the text is read: another process may get the next write.
async fn read(
    State(service): State<Invoices>,
    Path(invoice): Path<u64>,
    raises: Option<Extension<WriteToken>>,
) -> Result<String, Failure> {
    let mut redis = service.pool.get().await?;
    if let Some(Extension(token)) = raises {
        record(invoice)?.raise(token).run_async(&mut redis).await?;
    }
    let text: Option<String> = redis.hget(key(invoice), "text").await?;
    Ok(text.unwrap_or_default())
}

/// The layer refuses editors that this process knows to be late. The script that writes checks the token once more, in Redis: another
/// process may have let in a later editor, also while this request is in flight.
async fn write(
    State(service): State<Invoices>,
    Path(invoice): Path<u64>,
    Extension(token): Extension<FencingToken>,
    text: String,
) -> Result<StatusCode, Failure> {
    record(invoice)?.hset(token, &[("text", text)]).run_async(&mut service.pool.get().await?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A hash, at another key than the lock, which is stored at its name.
fn record(invoice: u64) -> Result<Fenced, leasehold::Invalid> {
    Fenced::new(&key(invoice))
}

fn key(invoice: u64) -> String {
    format!("invoice:{invoice}:record")
}

impl Invoices {
    /// Stands for a bank. A real one gets the invoice as its idempotency key: a server may end before it has stored the receipt.
    async fn ask_the_bank(&self, invoice: u64) -> anyhow::Result<String> {
        sleep(self.bank_takes).await;
        let number: u64 = self.pool.get().await?.incr("bank:payments", 1).await?;
        Ok(format!("receipt {number} for invoice {invoice}"))
    }
}

struct Failure(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Some(FencedError::Refused(refused)) = self.0.downcast_ref() {
            return (StatusCode::CONFLICT, refused.to_string()).into_response();
        }
        eprintln!("{:#}", self.0);
        (StatusCode::SERVICE_UNAVAILABLE, "the lock, Redis or the bank: try again\n").into_response()
    }
}
