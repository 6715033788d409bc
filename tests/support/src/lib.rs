//! Real servers, a faulty proxy and processes for tests.
