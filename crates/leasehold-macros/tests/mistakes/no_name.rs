//! Nothing at all.

#[leasehold::locked]
fn sync() -> Result<(), leasehold::Error> {
    Ok(())
}

fn main() {
    drop(sync());
}
