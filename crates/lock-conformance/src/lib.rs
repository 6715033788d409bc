//! The suite that every backend runs, in both faces
