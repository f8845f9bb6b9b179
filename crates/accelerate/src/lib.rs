//! Runs a gateway on real interfaces.
