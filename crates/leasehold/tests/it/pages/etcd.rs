//! The code of the page about etcd.

use std::error::Error;
use std::io::Write;
use std::process::Stdio;

use leasehold::etcd::{EtcdConfig, HeldKey};
use test_support::EtcdServer;
use test_support::bounds::{Watchdog, output_of};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

#[tokio::test(flavor = "multi_thread")]
async fn a_mutex_has_a_token() -> Outcome {
    let _bound = Watchdog::over("the locks");
    let server = EtcdServer::start();
    let url = &format!("{}/shop", server.url());
    let locks = leasehold::connect(url).await?; // etcd://etcd1,etcd2,etcd3/shop
    let guard = locks.mutex("nightly").acquire().await?; // concurrency.NewMutex(session, "/shop/nightly")
    println!("write with token {}", guard.fencing_token());
    guard.release().await?;
    let keys = server.run(&["get", "--prefix", "--keys-only", ""]);
    assert_eq!(keys, "shop/leasehold-base\n\n");
    Ok(())
}

/// Carries out the transaction of the page with etcd's own client. Returns what that prints.
fn transact(
    server: &EtcdServer,
    HeldKey { key, create_revision, .. }: &HeldKey,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let page = include_str!("../../../../../docs/book/src/stores/etcd.md");
    let (_, rest) = page.split_once("```text\ncreate(").ok_or("no transaction in the page")?;
    let (_, operations) = rest.split_once("\n\n").ok_or("no operations in the page")?;
    let (operations, _) = operations.split_once("```").ok_or("no end in the page")?;
    let mut command = server.etcdctl(&["txn"]);
    let mut txn = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut input = txn.stdin.take().ok_or("no input")?;
    write!(input, "create(\"{key}\") = \"{create_revision}\"\n\n{operations}\n\n")?;
    drop(input);
    Ok(String::from_utf8(output_of(txn, "etcdctl txn").stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_ones_own_takes_effect_only_while_the_lock_is_held() -> Outcome {
    let _bound = Watchdog::over("the transactions");
    let server = EtcdServer::start();
    server.run(&["put", "orders/total", "40"]);
    let url = &format!("{}/shop", server.url());
    let locks = leasehold::connect(url).await?;
    let config = EtcdConfig::from_url(url)?; // the URL of the locks
    let guard = locks.mutex("orders").acquire().await?;
    let held = leasehold::etcd::nonblocking::held_key(&config, guard.name(), guard.fencing_token()).await?;
    let held = held.ok_or("the lock is lost")?;
    println!("compare the create revision of {} with {}", held.key, held.create_revision);

    let told = transact(&server, &held)?;
    assert!(told.starts_with("SUCCESS") && told.contains("40"), "{told}");
    assert_eq!(server.run(&["get", "--print-value-only", "orders/total"]), "42\n");
    server.run(&["put", "orders/total", "50"]);
    guard.release().await?;
    let next = locks.mutex("orders").acquire().await?;
    let told = transact(&server, &held)?;
    assert!(told.starts_with("FAILURE") && !told.contains("50"), "it reads nothing: {told}");
    assert_eq!(server.run(&["get", "--print-value-only", "orders/total"]), "50\n");
    next.release().await?;
    Ok(())
}
