//! Measures Ironleaf on a real directory, and other engines beside it on request.
//!
//! Each sample is taken in a process of its own, so that its memory is its own and nothing is left of the sample
//! before it. Samples of all engines are interleaved: what disturbs the machine disturbs all of them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]

mod data;
mod engine;
mod measure;
mod report;
mod workload;

use clap::{Args, Parser, Subcommand};
use engine::EngineName;
use measure::Sample;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use workload::Workload;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
#[command(about = "Measures Ironleaf on a real directory", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Internal>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Args)]
struct RunArguments {
    /// What to measure; everything without an argument.
    workloads: Vec<Workload>,
    /// Which engines; all that were built in by default.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Where the stores are made; a temporary directory by default. Must be on the disk that is to be measured.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Samples of each workload.
    #[arg(long, default_value_t = 5)]
    repetitions: u32,
    /// Writes the samples as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    #[command(flatten)]
    scale: Scale,
}

/// What a sample is taken of.
#[derive(Args, Clone)]
pub(crate) struct Scale {
    /// Memory budget of each engine, in MiB; by default 512 where records are read, so that all are in memory, and
    /// 192 where they are written.
    #[arg(long)]
    memory_mib: Option<usize>,
    /// Operations of a sample, as a percentage of the usual number.
    #[arg(long, default_value_t = 100)]
    percent: u64,
}

/// Steps that run in a process of their own.
#[derive(Subcommand)]
enum Internal {
    /// Takes one sample and prints it as JSON.
    #[command(hide = true)]
    Sample {
        engine: EngineName,
        workload: Workload,
        store: PathBuf,
        seed: u64,
        #[command(flatten)]
        scale: Scale,
    },
    /// Fills the store that a workload reads.
    #[command(hide = true)]
    Prepare {
        engine: EngineName,
        workload: Workload,
        store: PathBuf,
        #[command(flatten)]
        scale: Scale,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ironleaf-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> Outcome<()> {
    if cfg!(any(ironleaf_lab, debug_assertions)) {
        return Err("this build carries the laboratory's flags or assertions; measure with ci/bench".into());
    }
    match arguments.command {
        Some(Internal::Sample { engine, workload, store, seed, scale }) => {
            let sample = workload.sample(engine, &store, seed, &scale)?;
            println!("{}", serde_json::to_string(&sample)?);
            Ok(())
        }
        Some(Internal::Prepare { engine, workload, store, scale }) => {
            workload.prepare(engine, &store, &scale)
        }
        None => measure_all(&arguments.run),
    }
}

fn measure_all(run: &RunArguments) -> Outcome<()> {
    let temporary = tempfile::tempdir()?;
    let directory = run.directory.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(directory)?;
    let workloads = if run.workloads.is_empty() { Workload::ALL } else { &run.workloads };
    let engines = if run.engines.is_empty() { EngineName::BUILT } else { &run.engines };
    let mut samples = Vec::new();
    for workload in workloads {
        let store = |engine: &EngineName| directory.join(format!("{engine}-{}", workload.store()));
        for engine in engines {
            if workload.needs_store() && !store(engine).exists() {
                eprintln!("filling {}", store(engine).display());
                child(
                    ["prepare", &engine.to_string(), &workload.to_string()],
                    &store(engine),
                    None,
                    &run.scale,
                )?;
            }
        }
        let mut of_workload: Vec<Sample> = Vec::new();
        for repetition in 0..run.repetitions {
            for engine in engines {
                if !workload.needs_store() && store(engine).exists() {
                    std::fs::remove_dir_all(store(engine))?;
                }
                let arguments = ["sample", &engine.to_string(), &workload.to_string()];
                let printed = child(arguments, &store(engine), Some(repetition), &run.scale)?;
                of_workload.push(serde_json::from_str(&printed)?);
            }
        }
        report::print(*workload, &of_workload);
        samples.extend(of_workload);
    }
    if let Some(file) = &run.json {
        std::fs::write(file, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(())
}

/// Runs a step in a process of its own; gives what it printed.
fn child(arguments: [&str; 3], store: &Path, repetition: Option<u32>, scale: &Scale) -> Outcome<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).arg(store);
    // Every sample writes other values and reads other records.
    command.args(repetition.map(|repetition| (u64::from(repetition) + 1).to_string()));
    if let Some(memory_mib) = scale.memory_mib {
        command.arg("--memory-mib").arg(memory_mib.to_string());
    }
    command.arg("--percent").arg(scale.percent.to_string());
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", arguments.join(" "), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
