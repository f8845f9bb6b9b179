//! bentpipe
fn main() {}
