//! The ZooKeeper backend against real servers: beside Curator, through the ends of servers, connections and sessions, and with configurations
//! that cannot work.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod base;
mod configured;
mod crowd;
mod curator;
mod examined;
mod followers;
mod leaving;
mod names;
mod outages;
mod permits;
mod readers;
mod replies;
mod rivals;
mod security;
mod sessions;
mod support;
mod suspended;
