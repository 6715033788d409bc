use std::fs;

use super::*;

/// The circles of a crate of these files.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    circles_of(&Modules::read(&folder.path().join("lib.rs")).unwrap())
}

#[test]
fn two_files_that_import_each_other_are_a_circle() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub(crate) struct A(B);"),
        ("b.rs", "pub(crate) struct B; fn f(_: super::a::A) {}"),
    ]);
    assert_eq!(found, ["a.rs names crate::b::B of b.rs, b.rs names super::a::A of a.rs"]);
}

#[test]
fn a_longer_circle_is_found_once() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub(crate) struct A(B);"),
        ("b.rs", "use crate::c::C; pub(crate) struct B(C);"),
        ("c.rs", "use crate::a; pub(crate) struct C(Box<a::A>);"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("c.rs names a::A of a.rs"), "{found:?}");
}

#[test]
fn a_parent_that_declares_and_reexports_is_no_circle() {
    let found = circles(&[
        ("lib.rs", "mod a; pub use a::A; pub(crate) use crate::a::b::B; pub struct Root;"),
        ("a.rs", "pub(crate) mod b; pub struct A; fn f(_: crate::Root) {}"),
        ("a/b.rs", "use super::A; pub struct B(A, crate::Root);"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_parent_that_names_what_its_child_defines_is_one() {
    let found = circles(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b; pub(crate) struct A; fn f() { b::run() }"),
        ("a/b.rs", "use super::A; pub(super) fn run() {}"),
    ]);
    assert_eq!(found, ["a.rs names b::run of a/b.rs, a/b.rs names super::A of a.rs"]);
}

#[test]
fn a_reexport_stands_for_the_file_behind_it() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b; pub use b::*;"),
        ("a.rs", "use crate::B; pub(crate) struct A(B);"),
        ("b.rs", "pub struct B; fn f(_: crate::a::A) {}"),
    ]);
    assert_eq!(found, ["a.rs names crate::B of b.rs, b.rs names crate::a::A of a.rs"]);
    let reexport_alone = circles(&[
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B; pub struct Root;"),
        ("a.rs", "use crate::B; pub struct A(B);"),
        ("b.rs", "pub struct B(crate::Root);"),
    ]);
    assert!(reexport_alone.is_empty(), "{reexport_alone:?}");
}

#[test]
fn paths_in_macro_arguments_count() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub(crate) const A: u8 = 1; fn f() { assert!(0 < super::b::B) }"),
        ("b.rs", "pub(crate) const B: u8 = 1; fn f() { println!(\"{}\", crate::a::A) }"),
    ]);
    assert_eq!(found, ["a.rs names super::b::B of b.rs, b.rs names crate::a::A of a.rs"]);
}

#[test]
fn tests_and_other_crates_do_not_count() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "use anyhow::anyhow; pub(crate) struct A;
            impl A { #[cfg(test)] fn f(_: crate::b::B) {} }
            #[cfg(test)] mod tests { use crate::b::B; }",
        ),
        ("b.rs", "use crate::a::A; pub(crate) struct B(A);"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn methods_in_a_submodule_are_no_circle() {
    let found = circles(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b; pub(crate) struct A; fn f(a: A) { a.run() }"),
        ("a/b.rs", "use super::A; impl A { pub(super) fn run(&self) {} }"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_function_with_the_name_of_a_module_is_not_taken_for_it() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use b::a;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "pub fn a() { crate::c::c() }"),
        ("c.rs", "pub fn c() { crate::A; }"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}
