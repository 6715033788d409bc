//! Types that do not fit, which the compiler finds.

use leasehold::{Client, Error};

#[leasehold::locked(client = locks, name = "a")]
fn client_of_the_other_facade(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = clients, name = "a")]
async fn no_such_client(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a")]
async fn not_a_result(locks: &Client) -> u32 {
    7
}

#[leasehold::locked(client = locks, name = "a")]
async fn error_that_cannot_say_it(locks: &Client) -> Result<u32, std::fmt::Error> {
    Ok(7)
}

#[leasehold::locked(client = locks, name = "a", on_busy = "skip")]
async fn not_an_option(locks: &Client) -> Result<u32, Error> {
    Ok(7)
}

#[leasehold::locked(client = locks, name = "a:{rows}")]
async fn not_shown(locks: &Client, rows: Vec<u8>) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a")]
async fn mistake_in_the_body(locks: &Client) -> Result<u32, Error> {
    Ok("seven")
}

#[leasehold::locked(client = locks, name = "a")]
async fn mistake_in_a_return(locks: &Client) -> Result<u32, Error> {
    if locks.warnings().is_empty() {
        return Ok("seven");
    }
    Ok(7)
}

#[leasehold::locked(client = locks, name = "a")]
fn mistake_in_a_plain_body(locks: &leasehold::blocking::Client) -> Result<u32, Error> {
    if locks.warnings().is_empty() {
        return Ok("seven");
    }
    locks.no_such_method()
}

fn main() {}
