//! The blocking face
