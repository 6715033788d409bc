//! The code of the section "Locked functions" in docs/book/src/kinds/mutex.md.
#![allow(clippy::print_stdout, reason = "the page prints")]

use std::error::Error;

use leasehold::blocking::Client;
use leasehold::{FencingToken, WriteToken};

type BoxError = Box<dyn Error + Send + Sync>;

struct Row;

async fn raise(token: WriteToken) -> Result<(), BoxError> {
    tokio::task::yield_now().await;
    println!("raised to {token}");
    Ok(())
}

async fn write(token: FencingToken, rows: &[Row]) -> Result<(), BoxError> {
    tokio::task::yield_now().await;
    println!("{} rows with token {token}", rows.len());
    Ok(())
}

struct Importer {
    locks: leasehold::Client,
}

impl Importer {
    #[leasehold::locked(client = self.locks, name = "import:{tenant}", ttl = "30s", wait = "5s", guard = guard)]
    async fn import(&self, tenant: &str, rows: Vec<Row>) -> Result<usize, BoxError> {
        raise(guard.write_token()).await?;
        write(guard.fencing_token(), &rows).await?;
        Ok(rows.len())
    }
}

#[leasehold::locked(client = locks, name = "nightly-report", on_busy = "skip", guard = guard)]
fn report(locks: &Client, pages: &[String]) -> Result<Option<usize>, Box<dyn Error>> {
    for page in pages {
        guard.check()?;
        println!("{page}");
    }
    Ok(Some(pages.len()))
}

#[tokio::test]
async fn a_locked_method_runs() -> Result<(), BoxError> {
    let importer = Importer { locks: leasehold::connect("memory:").await? };
    assert_eq!(importer.import("acme", vec![Row, Row]).await?, 2);
    Ok(())
}

#[test]
fn a_locked_function_is_skipped_while_another_runs() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("memory:")?;
    let held = locks.mutex("nightly-report").acquire()?;
    assert_eq!(report(&locks, &["one".into()])?, None);
    held.release()?;
    assert_eq!(report(&locks, &["one".into()])?, Some(1));
    Ok(())
}
