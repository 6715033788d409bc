//! Once nothing goes wrong any more, everybody has its turn, and then there is rest.

use crate::client::Process;

pub(crate) fn check<'a>(mut processes: impl Iterator<Item = &'a Process>) -> Result<(), String> {
    match processes.find(|process| !process.is_at_rest()) {
        Some(process) => Err(format!("long after all was well somebody still waits or holds: {process:?}")),
        None => Ok(()),
    }
}
