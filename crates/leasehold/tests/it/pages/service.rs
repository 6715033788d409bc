//! The code of the page about services compiles: it is here, word for word.
#![allow(
    unused_variables,
    dead_code,
    clippy::print_stderr,
    clippy::unused_async,
    reason = "this code is compiled, not run"
)]

use std::io;
use std::thread;

use std::error::Error;
use std::time::Duration;

use leasehold::{AcquireError, FencingToken, Lost, OnUnavailable, WriteToken};

/// What the snippets call and work on.
struct Row;

type AppError = Box<dyn Error + Send + Sync>;

async fn raise(_: WriteToken) -> Result<(), io::Error> {
    Ok(())
}

fn raise_fence(_: WriteToken) -> Result<(), io::Error> {
    Ok(())
}

async fn read() -> Result<Row, io::Error> {
    Ok(Row)
}

async fn write(_: FencingToken, _: Row) -> Result<(), io::Error> {
    Ok(())
}

async fn refresh(_: FencingToken) {}

async fn serve(_: App) -> Result<(), io::Error> {
    Ok(())
}

async fn terminated() {}

fn stop(_: Lost) {}

fn next() -> Option<u8> {
    None
}

fn load(_: u8, _: FencingToken) -> Result<(), io::Error> {
    Ok(())
}

#[derive(Clone)]
struct App {
    locks: leasehold::Client,
}

impl App {
    async fn connect(url: &str) -> Result<Self, leasehold::Error> {
        let locks = leasehold::connect(url).await?;
        for warning in locks.warnings() {
            eprintln!("{warning}");
        }
        Ok(Self { locks })
    }
}

async fn pay(app: &App, invoice: u64) -> Result<String, AppError> {
    let lock = app.locks.mutex(format!("invoice:{invoice}")).wait(Duration::from_secs(5)).why("payment");
    lock.try_run_while_held(async |guard| {
        raise(guard.write_token()).await?;
        let row = read().await?;
        write(guard.fencing_token(), row).await?;
        Ok("paid".to_owned())
    })
    .await
}

async fn refresh_often(app: App) {
    let lock = app.locks.mutex("refresh").on_unavailable(OnUnavailable::Wait);
    loop {
        match lock.run_while_held(async |guard| refresh(guard.fencing_token()).await).await {
            Err(leasehold::Error::Acquire(AcquireError::Closed)) => return,
            Err(error) => eprintln!("no refresh: {error}"),
            Ok(()) => {}
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

async fn run(app: App) -> Result<(), Box<dyn Error>> {
    tokio::select! {
        ended = serve(app.clone()) => ended?,
        () = terminated() => {}
    }
    app.locks.close().await;
    Ok(())
}

fn with_threads() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("sqlite:locks.db")?;
    let Some(guard) = locks.mutex("import").try_acquire()? else { return Ok(()) };
    let watch = guard.watch();
    thread::spawn(move || watch.lost().map(stop));
    raise_fence(guard.write_token())?;
    while let Some(batch) = next() {
        guard.check()?;
        load(batch, guard.fencing_token())?;
    }
    guard.release()?;
    Ok(())
}

fn cancelled(locks: &leasehold::blocking::Client) -> Result<(), Box<dyn Error>> {
    let cancel = leasehold::CancelToken::new();
    let on_signal = cancel.clone();
    match locks.mutex("import").cancelled_by(&cancel).acquire() {
        Err(AcquireError::Cancelled) => return Ok(()),
        acquired => acquired?.release()?,
    }
    Ok(())
}

/// The page says that guards can cross an `.await`, move to another thread, and be stored.
const fn is_sent_and_shared<T: Send + Sync + 'static>() {}

const _: () = {
    is_sent_and_shared::<leasehold::Client>();
    is_sent_and_shared::<leasehold::Guard>();
    is_sent_and_shared::<leasehold::SharedGuard>();
    is_sent_and_shared::<leasehold::LossWatch>();
    is_sent_and_shared::<leasehold::blocking::Guard>();
};

async fn with_a_pool(pool: leasehold::redis::nonblocking::Pool) -> Result<(), Box<dyn Error>> {
    use leasehold::FromRedis;

    let locks = leasehold::Client::from_redis(redis::Client::open("redis://127.0.0.1")?)?;
    let locks = leasehold::Client::from_pool(pool).push("redis://127.0.0.1").connect().await?;
    Ok(())
}
