//! A lock in plain threads: `cargo run -p leasehold --features blocking,sqlite --example blocking`.
#![expect(clippy::print_stdout, reason = "an example")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::temp_dir().join("leasehold-example.db");
    let locks = leasehold::blocking::connect(&format!("sqlite:{}", file.display()))?;
    let Some(guard) = locks.mutex("import").why("the example").try_acquire()? else {
        println!("another process is importing");
        return Ok(());
    };
    println!("raise the fence to {} before anything is read", guard.write_token());
    for batch in 1..=3 {
        guard.check()?;
        println!("batch {batch} with token {}", guard.fencing_token());
    }
    guard.release()?; // an error if a loss was detected
    println!("released");
    Ok(())
}
