//! The scripts. Each compares the token with the fence first, and changes nothing if it is lower.

use std::sync::LazyLock;

use ::redis::Script;

macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("pass.lua"), include_str!($file))))
    };
}

pub(super) static RAISE: LazyLock<Script> = script!("raise.lua");
pub(super) static SET: LazyLock<Script> = script!("set.lua");
pub(super) static HSET: LazyLock<Script> = script!("hset.lua");
pub(super) static DEL: LazyLock<Script> = script!("del.lua");
pub(super) static READ: LazyLock<Script> = script!("read.lua");
