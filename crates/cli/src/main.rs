//! The `bentpipe` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    bentpipe_cli::main(bentpipe_cli::Registry::default())
}
