//! The hop: an emulator of its own between two TUN interfaces, that shares nothing with the links of the
//! project but the way in to the kernel.

pub mod dice;
pub mod direction;
pub mod record;
pub mod relay;
