//! Any configuration file is read, or refused by its name.

use crate::support::leasehold::{Leasehold, code, text};
use fuzz::{fuzz_beside_others, inputs};
use proptest::prelude::*;
use test_support::Finish;

const FILES: &[&str] = &[
    "# defaults\nurl = \"redis://h\"\nttl = \"9s\"\n",
    "wait = \"10m\"\nwhy = \"f\u{fc}r M\u{e4}rz\" # a remark\n",
    "why = '''a\nb'''\n[lock]\nttl = 1\n",
];

#[test]
fn any_configuration_file_is_read_or_refused_by_its_name() {
    let leasehold = Leasehold::new();
    let (file, store) = (leasehold.scratch.file("any.toml"), leasehold.scratch.file("locks.db"));
    let list = format!("ls --url sqlite:{}", store.display());
    fuzz_beside_others(inputs::like(FILES), |content| {
        std::fs::write(&file, content).unwrap();
        let output = leasehold.command(&list).env("LEASEHOLD_CONFIG", &file).finish();
        let (exit, said) = (code(output.status), text(&output.stderr));
        let is_refused = exit == 78 && said.contains("any.toml") && said.contains("LEASEHOLD_CONFIG");
        prop_assert!(is_refused || exit == 0, "{exit}: {said}");
        prop_assert!(!said.trim_end().contains(|c: char| c.is_control()), "{said:?}");
        Ok(())
    });
}
