//! The reference backend: a store in this process, on a clock you can move
