//! Who acquires the lock?

#[leasehold::locked(name = "sync:{tenant}", ttl = "30s")]
async fn sync(tenant: &str) -> Result<(), leasehold::Error> {
    Ok(())
}

fn main() {
    drop(sync("acme"));
}
