//! Builds the book. Its folder is the only argument.

use std::path::PathBuf;

use anyhow::{Context, Result};
use mdbook_driver::MDBook;

fn main() -> Result<()> {
    let folder: PathBuf = std::env::args_os().nth(1).context("usage: leasehold-book FOLDER")?.into();
    let book = MDBook::load(&folder)?;
    book.build()?;
    println!("the book is at {}", book.build_dir_for("html").join("index.html").display());
    Ok(())
}
