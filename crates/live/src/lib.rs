//! The live driver: the simulator's network with real packets at its ends, under the real clock.
