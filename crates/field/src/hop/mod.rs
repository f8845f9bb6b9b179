//! The hop: a link emulator between two TUN interfaces, independent of the project's own links.

pub mod dice;
pub mod direction;
pub mod record;
pub mod relay;
