//! The command line of ombx with two additional benchmarks.

mod copy;
mod request;

fn main() -> std::process::ExitCode {
    ombx_cli::main()
}
