//! The operating system's environment keeps every promise of the seam.

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

#[cfg(ironleaf_lab)]
fn trials() -> Vec<Trial> {
    use ironleaf::env::{conformance::CHECKS, os::environment};
    let trial = |check: &ironleaf::env::conformance::Check| {
        let run = check.run;
        Trial::test(check.name, move || {
            let directory = tempfile::tempdir()?;
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            runtime.block_on(async {
                run(environment()?, directory.path().to_path_buf()).await;
                Ok(())
            })
        })
    };
    CHECKS.iter().map(trial).collect()
}

/// The table is part of the laboratory's builds only.
#[cfg(not(ironleaf_lab))]
fn trials() -> Vec<Trial> {
    Vec::new()
}
