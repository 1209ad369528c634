//! The command line of ombx with one more benchmark.

mod copy;

fn main() -> std::process::ExitCode {
    ombx_cli::main()
}
