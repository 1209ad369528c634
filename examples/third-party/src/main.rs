//! The command line of ombx with an additional benchmark.

mod copy;

fn main() -> std::process::ExitCode {
    ombx_cli::main()
}
