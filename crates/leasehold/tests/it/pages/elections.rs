//! The code of docs/book/src/kinds/election.md.
#![allow(clippy::print_stdout, reason = "the page prints")]

use std::error::Error;
use std::ops::ControlFlow;
use std::time::Duration;

use leasehold::{Client, FencingToken, WriteToken, blocking};

async fn raise(term: WriteToken) {
    tokio::task::yield_now().await;
    println!("raised to {term}");
}

fn raise_fence(term: WriteToken) {
    println!("raised to {term}");
}

async fn schedule(term: FencingToken) {
    tokio::task::yield_now().await;
    println!("scheduled in term {term}");
}

async fn leads(locks: &Client) -> Result<(), Box<dyn Error>> {
    use leasehold::Kit;
    let election = locks.election("scheduler").why("web-3:8080");
    let led = election.run_while_leader(|leadership| async move {
        raise(leadership.write_token()).await;
        schedule(leadership.term()).await;
        ControlFlow::Break(())
    });
    led.await?;
    Ok(())
}

fn schedule_one(term: FencingToken) -> bool {
    println!("nothing to schedule in term {term}");
    false
}

fn leads_in_a_thread(locks: &blocking::Client) -> Result<(), Box<dyn Error>> {
    use leasehold::blocking::Kit;
    let election = locks.election("scheduler").grace(Duration::from_secs(3));
    let leadership = election.campaign()?;
    raise_fence(leadership.write_token());
    while leadership.check().is_ok() && schedule_one(leadership.term()) {}
    leadership.resign()?;
    Ok(())
}

async fn observes(locks: &Client) -> Result<(), Box<dyn Error>> {
    use leasehold::Kit;
    let mut leaders = locks.election("scheduler").observe();
    while let Some(leader) = leaders.changed().await? {
        println!("{} leads, term {:?}", leader.holder, leader.term());
    }
    println!("nobody leads");
    Ok(())
}

#[tokio::test]
async fn the_examples_of_elections_run() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::connect("memory:").await?;
    leads(&locks).await?;
    observes(&locks).await?;
    leads_in_a_thread(&blocking::connect("memory:")?)
}
