//! Tests of the header code from outside.
//!
//! The checks themselves were checked: each of these changes to the source was made by hand, one at a time, and made at
//! least the named test fail.
//!
//! | change | caught by |
//! |---|---|
//! MUTATIONS

mod check;
mod corpus;
mod edits;
mod model;
mod mutate;
mod oracle;
mod replay;
mod round_trip;
