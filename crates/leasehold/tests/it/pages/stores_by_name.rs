//! The code of the pages about the stores.

use std::error::Error;

#[test]
fn the_example_of_memory_runs() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("memory:tests")?;
    let guard = locks.mutex("import").acquire()?;
    assert!(locks.mutex("import").try_acquire()?.is_none());
    guard.release()?;
    Ok(())
}

#[expect(dead_code, reason = "it is compiled: its directory is not on every machine")]
fn sqlite() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("sqlite:/var/lib/shop/locks.db?prefix=shop")?;
    drop(locks);
    Ok(())
}
