//! Segment dialogues: what arrives, and what must leave at which time. One file per topic; each test names the rule it holds.

mod script;

mod basics;
mod close;
mod ecn;
mod open;
mod options;
mod receiving;
mod reset;
mod rto;
mod sending;
mod window;
