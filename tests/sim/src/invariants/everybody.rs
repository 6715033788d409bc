//! Once nothing goes wrong any more, everybody has its turn, and then there is rest.

use crate::client::{Backend, Process};

pub(crate) fn check<'a, B: Backend + 'a>(mut processes: impl Iterator<Item = &'a Process<B>>) -> Result<(), String> {
    match processes.find(|process| !process.is_at_rest()) {
        Some(process) => {
            let stations: Vec<_> = process.sites.iter().map(|site| &site.station).collect();
            Err(format!("long after all was well somebody waits or holds at {:?}: {stations:?}", process.id))
        }
        None => Ok(()),
    }
}
