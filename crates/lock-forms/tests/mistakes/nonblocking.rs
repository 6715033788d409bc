//! Blocks in the form of `nonblocking`.

use lock_forms::nonblocking as both;

#[both]
async fn plain() -> u32 {
    let later = async { 1 };
    later.await
}

#[both]
async fn moved(number: u32) -> Option<u32> {
    run(async move { Some(number) }).await
}

#[both]
async fn run(work: Option<u32>) -> Option<u32> {
    let _allowed = async |more: u32| more;
    work
}

fn main() {}
