//! The code of the page about ZooKeeper.

use std::error::Error;

use test_support::ZookeeperServer;
use test_support::bounds::Watchdog;

#[tokio::test(flavor = "multi_thread")]
async fn a_mutex_has_a_token() -> Result<(), Box<dyn Error + Send + Sync>> {
    let _bound = Watchdog::over("the locks");
    let server = ZookeeperServer::start();
    server.run(&["create", "/shop"]);
    let url = &format!("zookeeper://{}/shop?tick=2s", server.address());
    let locks = leasehold::connect(url).await?; // zookeeper://zk1,zk2,zk3/shop?tick=2s
    let guard = locks.mutex("locks/nightly").acquire().await?; // InterProcessMutex at /shop/locks/nightly
    println!("write with token {}", guard.fencing_token());
    guard.release().await?;
    let directories = server.run(&["ls", "/shop/locks"]);
    assert!(directories.contains("nightly"), "{directories}");
    Ok(())
}
