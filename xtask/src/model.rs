//! `cargo xtask model`: the quorum's protocol at larger bounds than the tests try.

use anyhow::Result;

use crate::step;

/// What is explored by default: as much of each model as takes minutes.
const LARGER: [&[&str]; 4] = [
    &["tokens", "--clients", "3", "--foreign", "1"],
    &["guard", "three", "--losses", "2", "--ticks", "3"],
    &["guard", "three", "--restarts", "1"],
    &["guard", "five", "--losses", "2", "--ticks", "3"],
];

/// Explores; arguments are passed on to the model.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        return explore(arguments.iter().map(String::as_str));
    }
    LARGER.into_iter().try_for_each(|one| explore(one.iter().copied()))
}

fn explore<'a>(arguments: impl Iterator<Item = &'a str>) -> Result<()> {
    step::cargo(
        &["run", "--release", "--package", "quorum-model", "--"].into_iter().chain(arguments).collect::<Vec<_>>(),
    )
}
