//! The binary `ombx`.

fn main() -> std::process::ExitCode {
    ombx_cli::main()
}
