//! The backend for one standalone Redis
