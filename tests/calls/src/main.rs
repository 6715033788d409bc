//! Acquires and releases a lock of a memory store, for `cargo xtask calls` to count what that takes.
//!
//! `calls async|blocking whole` does all of it; `calls async|blocking claim` ends at the first request to the store.

use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use async_trait::async_trait;
use lock_core::{
    Answer, AsyncBackend, AsyncLayer, Backend, BackendError, BlockingBackend, BlockingLayer, Claim, Layer,
};
use lock_memory::MemoryStore;

/// Whether the process ends at the next claim.
static ENDS: AtomicBool = AtomicBool::new(false);

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["async", part] => from_tokio(ends_early(part)?),
        ["blocking", part] => from_a_thread(ends_early(part)?),
        _ => bail!("usage: calls async|blocking claim|whole"),
    }
}

fn ends_early(part: &str) -> Result<bool> {
    match part {
        "claim" => Ok(true),
        "whole" => Ok(false),
        other => bail!("`claim` or `whole`, not {other:?}"),
    }
}

fn from_tokio(ends_early: bool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let store: Arc<dyn AsyncBackend> = Arc::new(MemoryStore::default().nonblocking());
    let client = lock_async::Client::new(Arc::new(Ends(store)))?;
    let lock = client.mutex("a");
    runtime.block_on(async { lock.acquire().await?.release().await.map_err(anyhow::Error::from) })?;
    ENDS.store(ends_early, Ordering::Relaxed);
    counted(|| runtime.block_on(async { lock.acquire().await?.release().await.map_err(anyhow::Error::from) }))
}

fn from_a_thread(ends_early: bool) -> Result<()> {
    let store: Arc<dyn BlockingBackend> = Arc::new(MemoryStore::default().blocking());
    let client = lock_blocking::Client::new(Arc::new(Ends(store)))?;
    let lock = client.mutex("a");
    lock.acquire()?.release()?;
    ENDS.store(ends_early, Ordering::Relaxed);
    counted(|| Ok(lock.acquire()?.release()?))
}

/// What is counted, by its name.
#[inline(never)]
fn counted(pair: impl FnOnce() -> Result<()>) -> Result<()> {
    pair()
}

/// A store at which the process ends.
#[derive(Debug)]
struct Ends<B: ?Sized>(Arc<B>);

impl<B: Backend + ?Sized> Layer for Ends<B> {
    type Inner = B;

    fn inner(&self) -> &Arc<B> {
        &self.0
    }
}

#[async_trait]
impl AsyncLayer for Ends<dyn AsyncBackend> {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self(inner))
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        end();
        self.0.acquire(claim, within).await
    }
}

impl BlockingLayer for Ends<dyn BlockingBackend> {
    fn over(&self, inner: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
        Arc::new(Self(inner))
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        end();
        self.0.acquire(claim, within)
    }
}

fn end() {
    if ENDS.load(Ordering::Relaxed) {
        exit(0);
    }
}
