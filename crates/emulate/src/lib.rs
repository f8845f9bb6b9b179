//! Emulation sessions: namespaces around a live link, the programs in them, and what came out.
