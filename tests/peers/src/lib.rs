//! leasehold beside other lock libraries on one key; see `tests/`.
