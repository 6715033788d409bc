//! Files of a crate must not depend on each other in a circle.
//!
//! The rule: a file depends on each file that defines an item that its code names, by whatever path. Declaring a
//! submodule and re-exporting its items is not a dependency, and tests do not count. A method is not a name: a type's
//! `impl` blocks may be spread over submodules of its file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::modules::{Meaning, Modules, Segments};
use super::sources;

/// How many re-exports a name may pass through. An import of a crate's item of the same name leads back to itself.
const REEXPORTS: u8 = 16;

/// Looks through every crate of the workspace.
pub(super) fn run() -> Result<()> {
    let mut found = Vec::new();
    for package in sources::packages()? {
        for root in package.roots() {
            let circles = circles_of(&Modules::read(&root)?);
            found.extend(circles.into_iter().map(|circle| format!("\n  {}: {circle}", package.name)));
        }
    }
    if !found.is_empty() {
        bail!("files depend on each other in a circle; move what both need to a third file:{}", found.concat());
    }
    Ok(())
}

/// Which file depends on which, and the path that shows it.
type Edges = BTreeMap<usize, BTreeMap<usize, String>>;

/// The shortest circle of each group of files that depend on each other, as a sentence.
fn circles_of(modules: &Modules) -> Vec<String> {
    let edges = edges(modules);
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for file in 0..modules.files.len() {
        let Some(circle) = circle(&edges, file) else { continue };
        if circle.iter().all(|step| seen.insert(*step)) {
            circles.push(sentence(&modules.files, &edges, &circle));
        }
    }
    circles
}

fn edges(modules: &Modules) -> Edges {
    let mut edges = Edges::new();
    for (number, module) in modules.modules.iter().enumerate() {
        for path in &module.used {
            for file in defined_in(modules, number, path, REEXPORTS) {
                if file != module.file {
                    edges.entry(module.file).or_default().entry(file).or_insert_with(|| path.join("::"));
                }
            }
        }
    }
    edges
}

/// The files that define what this path means in this module. A module itself is not an item.
fn defined_in(modules: &Modules, module: usize, path: &[String], left: u8) -> BTreeSet<usize> {
    let mut start = module;
    let mut rest = path;
    let mut qualified = false;
    while let Some((first, more)) = rest.split_first() {
        start = match first.as_str() {
            "crate" => 0,
            "self" => start,
            "super" => modules.modules[start].parent.unwrap_or(start),
            _ => break,
        };
        (rest, qualified) = (more, true);
    }
    let found = named(modules, start, rest, left);
    if found.is_empty() && qualified && !rest.is_empty() && !knows(modules, start, &rest[0]) {
        // A macro made it, or a glob import brought it.
        return BTreeSet::from([modules.modules[start].file]);
    }
    found
}

fn knows(modules: &Modules, module: usize, name: &str) -> bool {
    modules.modules[module].names.contains_key(name)
}

/// The files that define what a name in a module refers to.
fn named(modules: &Modules, number: usize, path: &[String], left: u8) -> BTreeSet<usize> {
    let module = &modules.modules[number];
    let (Some((first, rest)), Some(left)) = (path.split_first(), left.checked_sub(1)) else { return BTreeSet::new() };
    let onward =
        |start: &Segments, rest: &[String]| defined_in(modules, number, &[start.as_slice(), rest].concat(), left);
    match module.names.get(first) {
        Some(meanings) => {
            // A function may have the name of a module; only the module has paths below it.
            let is_module = |meaning: &&Meaning| matches!(meaning, Meaning::Module(_));
            let below_module = !rest.is_empty() && meanings.iter().any(|meaning| is_module(&meaning));
            let meant = meanings.iter().filter(|meaning| !below_module || is_module(meaning));
            meant
                .flat_map(|meaning| match meaning {
                    Meaning::Item => BTreeSet::from([module.file]),
                    Meaning::Module(inner) => named(modules, *inner, rest, left),
                    Meaning::Import(target) => onward(target, rest),
                })
                .collect()
        }
        None => module.globs.iter().flat_map(|glob| onward(glob, path)).collect(),
    }
}

/// The shortest way from a file back to itself.
fn circle(edges: &Edges, file: usize) -> Option<Vec<usize>> {
    let mut came_from = BTreeMap::new();
    let mut waiting = VecDeque::from([file]);
    while let Some(step) = waiting.pop_front() {
        for next in edges.get(&step).into_iter().flat_map(BTreeMap::keys) {
            if *next == file {
                return Some(way(&came_from, file, step));
            }
            if !came_from.contains_key(next) {
                came_from.insert(*next, step);
                waiting.push_back(*next);
            }
        }
    }
    None
}

fn way(came_from: &BTreeMap<usize, usize>, from: usize, to: usize) -> Vec<usize> {
    let mut way = vec![to];
    while let Some(step) = way.last().filter(|step| **step != from) {
        way.push(came_from[step]);
    }
    way.reverse();
    way
}

fn sentence(files: &[PathBuf], edges: &Edges, circle: &[usize]) -> String {
    let root = files[0].parent().unwrap_or(Path::new(""));
    let name = |file: usize| files[file].strip_prefix(root).unwrap_or(&files[file]).display().to_string();
    let steps = circle.iter().zip(circle.iter().cycle().skip(1));
    let steps = steps.map(|(from, to)| format!("{} names {} of {}", name(*from), edges[from][to], name(*to)));
    steps.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
