//! The embedded backend: one SQLite file shared by the processes of one machine
