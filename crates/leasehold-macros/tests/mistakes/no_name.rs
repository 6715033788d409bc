//! Nothing at all.

#[leasehold::locked]
fn sync() -> Result<(), leasehold::WhileHeldError> {
    Ok(())
}

fn main() {
    drop(sync());
}
