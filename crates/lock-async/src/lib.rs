//! The tokio face
