//! The form for tasks.

use lock_forms::nonblocking as both;

pub(crate) mod source;
