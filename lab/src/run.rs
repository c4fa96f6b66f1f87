//! `lab run`: a campaign.

use crate::arguments::{Family, RunArguments};
use crate::interrupt::{self, interrupted};
use crate::measure::{Probes, cpu_time, jobs, resident_bytes};
use crate::output::{
    JsonTarget, grouped, replay_command, table, take_stdout, wrapped, writable, write_scenario,
};
use crate::{Misuse, Verdict};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use ironleaf_sim::campaign::{Campaign, Found, Observer, PROBES_FROM_SEEDS, Runtime, Summary, campaign};
use ironleaf_sim::runner::HAS_MADSIM;
use ironleaf_sim::runner::RunReport;
use ironleaf_sim::scenario as simulated;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a campaign takes that nobody gave a length.
const TIME_DEFAULT: Duration = Duration::from_secs(30);
/// Characters in a line of the summary, beside the name at its beginning.
const LINE_WIDTH: usize = 84;

/// What a campaign took, and the engine's probes that it passed.
struct Cost {
    probes: Vec<(&'static str, u64)>,
    real: Duration,
    cpu: Duration,
    resident: Option<u64>,
}

impl Cost {
    fn seeds_per_cpu_second(&self, seeds: u64) -> f64 {
        seeds as f64 / self.cpu.as_secs_f64().max(1e-9)
    }
}

/// A progress bar that also ends the campaign in time.
struct Progress {
    bar: ProgressBar,
    start: Instant,
    time: Option<Duration>,
    failures: AtomicU64,
}

impl Progress {
    fn new(arguments: &RunArguments, time: Option<Duration>) -> Self {
        let (length, template) = match (&arguments.seeds, time) {
            (_, Some(time)) => (time.as_millis() as u64, "{bar:40} {elapsed} of the time, {msg}"),
            (Some(seeds), None) => {
                let length = (seeds.end - seeds.start).div_ceil(arguments.shard.1.max(1));
                (length, "{bar:40} {pos}/{len} seeds, {msg}, {eta} to go")
            }
            (None, None) => (0, "{msg}"),
        };
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        let bar = ProgressBar::new(length).with_style(style).with_message("0 failures");
        Self { bar, start: Instant::now(), time, failures: AtomicU64::new(0) }
    }
}

impl Observer for Progress {
    fn ran(&self, seed: u64, _report: &RunReport) -> bool {
        let elapsed = self.start.elapsed();
        match self.time {
            Some(_) => self.bar.set_position(elapsed.as_millis() as u64),
            None => self.bar.inc(1),
        }
        if seed.is_multiple_of(64) {
            self.bar.set_message(format!("seed {seed}, {} failures", self.failures.load(Relaxed)));
        }
        self.time.is_none_or(|time| elapsed < time) && !interrupted()
    }

    fn may_shrink(&self) -> bool {
        !interrupted()
    }

    fn failed(&self, seed: u64, report: &RunReport) {
        self.failures.fetch_add(1, Relaxed);
        if let Some(failure) = &report.failure {
            self.bar.suspend(|| {
                complain!("seed {seed} failed ({}); replaying and cutting it down", failure.fingerprint)
            });
        }
    }
}

/// Runs a campaign of each family, prints the summaries and writes what failed.
pub fn run(arguments: &RunArguments) -> Result<Verdict, Misuse> {
    let families = arguments.family.map_or_else(|| Family::value_variants().to_vec(), |family| vec![family]);
    let planned = Campaign {
        runtime: runtime(arguments.runtime)?,
        seeds: arguments.seeds.clone().unwrap_or(0..u64::MAX),
        shard: arguments.shard,
        jobs: jobs(arguments.jobs),
        repeat_percent: arguments.check_determinism,
        ..Campaign::default()
    };
    if planned.seed_from(planned.seeds.start).is_none() {
        let ((index, count), seeds) = (planned.shard, &planned.seeds);
        return Err(Misuse(format!(
            "--shard {index}/{count} leaves none of the seeds {}..{}",
            seeds.start, seeds.end
        )));
    }
    let made_for_this = !arguments.report.exists();
    interrupt::listen();
    writable(&arguments.report)?;
    let json = arguments.json.as_deref().map(JsonTarget::check).transpose().inspect_err(|_| {
        tidy(arguments, made_for_this);
    })?;
    if matches!(json, Some(JsonTarget::Stdout)) {
        take_stdout();
    }
    let time = match (arguments.time, &arguments.seeds) {
        (None, None) => Some(TIME_DEFAULT),
        (time, _) => time,
    };
    let time = time.map(|time| time / u32::try_from(families.len()).unwrap_or(1));
    let (mut verdict, mut summaries) = (Verdict::Clean, Vec::new());
    for family in families {
        let family = Campaign { family: family.simulated(), ..planned.clone() };
        let (ended, summary) = run_family(arguments, &family, time)?;
        summaries.push(summary);
        verdict = verdict.and(ended);
        if interrupted() {
            break;
        }
    }
    if let Some(json) = json {
        let value = if let [summary] = &mut summaries[..] {
            summary.take()
        } else {
            serde_json::Value::Array(summaries)
        };
        json.write(&format!("{value:#}\n"))?;
    }
    tidy(arguments, made_for_this);
    Ok(verdict)
}

/// Runs the campaign of one family; how it ended, and its summary as data.
fn run_family(
    arguments: &RunArguments,
    planned: &Campaign,
    time: Option<Duration>,
) -> Result<(Verdict, serde_json::Value), Misuse> {
    let (real, cpu, probes) = (Instant::now(), cpu_time(), Probes::begin());
    let progress = Progress::new(arguments, time);
    let summary = campaign(planned, &progress);
    progress.bar.finish_and_clear();
    let (real, cpu, resident) = (real.elapsed(), cpu_time() - cpu, resident_bytes());
    let cost = Cost { probes: probes.since(), real, cpu, resident };
    let cold = summary.cold(&cost.probes);
    say!("{}", describe(&summary, &cost).trim_end());
    for found in &summary.found {
        report(arguments, planned.family, found)?;
    }
    for differing in &summary.nondeterministic {
        say!("NOT DETERMINISTIC: seed {}: {}", differing.seed, differing.what);
        say!(
            "  repeat with: cargo lab run --family {}{} --seeds {}..{} --check-determinism all",
            planned.family.name(),
            if planned.runtime == Runtime::Madsim { " --runtime madsim" } else { "" },
            differing.seed,
            differing.seed + 1
        );
    }
    let data = as_json(arguments, &summary, &cost, &cold);
    Ok((conclude(&summary, &cold), data))
}

/// The runtime that was asked for, if this build has it.
pub fn runtime(asked: crate::arguments::Runtime) -> Result<Runtime, Misuse> {
    match asked {
        crate::arguments::Runtime::Lab => Ok(Runtime::Lab),
        crate::arguments::Runtime::Madsim if HAS_MADSIM => Ok(Runtime::Madsim),
        crate::arguments::Runtime::Madsim => Err(Misuse(WITHOUT_MADSIM.to_owned())),
    }
}

/// Why something cannot run under madsim.
pub const WITHOUT_MADSIM: &str = "this build does not have madsim: an exported RUSTFLAGS replaces the flags in \
                                  .cargo/config.toml; unset it and use `cargo lab`";

/// Removes the report directory if it was made for this campaign and nothing was written into it.
fn tidy(arguments: &RunArguments, made_for_this: bool) {
    if made_for_this {
        let _ = std::fs::remove_dir(&arguments.report);
    }
}

/// The last line, and what it comes to.
fn conclude(summary: &Summary, cold: &[String]) -> Verdict {
    let vacuous = format!(
        "VACUOUS: {} seeds of the family {} never came to {}; run more seeds, such as --seeds {}",
        grouped(summary.seeds),
        summary.family.name(),
        cold.join(", "),
        summary.seeds.saturating_mul(2).max(PROBES_FROM_SEEDS * 2)
    );
    if !summary.found.is_empty() || !summary.nondeterministic.is_empty() {
        if !cold.is_empty() {
            say!("{vacuous}");
        }
        say!("FAILED");
        Verdict::Failed
    } else if interrupted() {
        say!("interrupted; clean so far");
        Verdict::Interrupted
    } else if !cold.is_empty() {
        say!("{vacuous}");
        Verdict::Failed
    } else {
        say!("clean");
        Verdict::Clean
    }
}

fn describe(summary: &Summary, cost: &Cost) -> String {
    let listed = |title: &str, counts: Vec<(String, u64)>| -> Vec<Vec<String>> {
        let counts = counts.into_iter().map(|(name, count)| format!("{name} {}", grouped(count)));
        let titles = std::iter::once(title).chain(std::iter::repeat(""));
        titles.zip(wrapped(counts, LINE_WIDTH)).map(|(title, line)| vec![title.to_owned(), line]).collect()
    };
    let losses =
        Summary::loss_kinds().map(|kind| (kind.to_owned(), summary.losses.get(kind).copied().unwrap_or(0)));
    let sites = summary.fired_by_site().into_iter().map(|(site, count)| (site.to_string(), count));
    let probes = summary.probes_expected(&cost.probes);
    let unreached: Vec<&str> =
        probes.iter().filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect();
    let mut reached = format!("{} of {} reached", probes.len() - unreached.len(), probes.len());
    if !unreached.is_empty() {
        reached.push_str(&format!("; not {}", unreached.join(", ")));
    }
    let row = |name: &str, text: String| vec![name.to_owned(), text];
    let mut rows = vec![
        row("family", summary.family.name().to_owned()),
        row("seeds", format!("{} run, {} failed", grouped(summary.seeds), summary.found.len())),
        row("operations", format!("{}, {} events", grouped(summary.operations), grouped(summary.events))),
        row("crashes", format!("{}, {} recoveries", grouped(summary.crashes), grouped(summary.recoveries))),
        row(
            "repeated",
            format!("{} runs, {} differed", grouped(summary.repeated), summary.nondeterministic.len()),
        ),
    ];
    rows.extend(listed("power losses", losses.collect()));
    rows.extend(listed("deviations", sites.collect()));
    let faults = summary.fault_counts().map(|(kind, count)| {
        format!("{kind} {} of {}", grouped(count.effective), grouped(count.fired.max(count.effective)))
    });
    let faults = wrapped(faults, LINE_WIDTH).into_iter().filter(|line| !line.is_empty());
    let titles = std::iter::once("faults").chain(std::iter::repeat(""));
    rows.extend(titles.zip(faults).map(|(title, line)| vec![title.to_owned(), line]));
    if summary.failed_opens > 0 {
        rows.push(row("failed opens", format!("{}, for a fault each", grouped(summary.failed_opens))));
    }
    if summary.refusals > 0 {
        rows.push(row("refused", format!("{} databases, for damage", grouped(summary.refusals))));
    }
    rows.extend([
        row("probes", reached),
        row(
            "time",
            format!(
                "{:.1} s, {:.1} s of CPU, {:.0} s simulated",
                cost.real.as_secs_f64(),
                cost.cpu.as_secs_f64(),
                summary.virtual_time.as_secs_f64()
            ),
        ),
        row(
            "speed",
            format!(
                "{:.0} seeds per CPU-second",
                cost.seeds_per_cpu_second(summary.seeds + summary.repeated)
            ),
        ),
    ]);
    if let Some(bytes) = cost.resident {
        rows.push(row("memory", format!("{:.1} MiB resident", bytes as f64 / f64::from(1 << 20))));
    }
    table(&rows)
}

/// Prints a failure and writes its scenario, with the command that replays it.
fn report(arguments: &RunArguments, family: simulated::Family, found: &Found) -> Result<(), Misuse> {
    say!("FAILED seed {}: {}", found.seed, found.failure);
    let name = format!("{}-seed-{}", family.name(), found.seed);
    let file = match &found.shrunk {
        None => write_scenario(&arguments.report, &name, &found.recorded)?,
        Some(shrunk) => {
            let recorded = write_scenario(&arguments.report, &format!("{name}-recorded"), &found.recorded)?;
            if found.recorded.madsim.is_some() {
                let elsewhere = match shrunk.scenario.madsim {
                    None => "it fails on the laboratory's executor as well, where it was cut down",
                    Some(_) => "it fails under madsim only, and was cut down there",
                };
                say!("  {elsewhere}");
                say!(
                    "  as it was found, with madsim: {} {}",
                    replay_command(&found.recorded),
                    recorded.display()
                );
            }
            say!(
                "  cut down to {} operations and {} deviations in {} replays",
                shrunk.scenario.operation_count(),
                shrunk.scenario.deviations.len(),
                shrunk.replays
            );
            write_scenario(&arguments.report, &name, &shrunk.scenario)?
        }
    };
    say!("  replay with: {} {}", replay_command(&found.recorded), file.display());
    Ok(())
}

fn as_json(arguments: &RunArguments, summary: &Summary, cost: &Cost, cold: &[String]) -> serde_json::Value {
    let losses: serde_json::Map<String, serde_json::Value> = Summary::loss_kinds()
        .map(|kind| (kind.to_owned(), summary.losses.get(kind).copied().unwrap_or(0).into()))
        .collect();
    let faults: serde_json::Map<String, serde_json::Value> = summary
        .fault_counts()
        .map(|(kind, count)| {
            let value = serde_json::json!({ "fired": count.fired, "effective": count.effective });
            (kind.to_owned(), value)
        })
        .collect();
    let mut fired = serde_json::Map::new();
    for ((site, label), count) in &summary.fired {
        let labels = fired.entry(site.to_string()).or_insert_with(|| serde_json::json!({}));
        labels[label.as_str()] = (*count).into();
    }
    let probes: serde_json::Map<String, serde_json::Value> =
        cost.probes.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect();
    let failures: Vec<_> = summary
        .found
        .iter()
        .map(|found| {
            serde_json::json!({
                "seed": found.seed,
                "fingerprint": found.failure.fingerprint,
                "message": found.failure.message,
                "operations": found.shrunk.as_ref().map(|shrunk| shrunk.scenario.operation_count()),
                "deviations": found.shrunk.as_ref().map(|shrunk| shrunk.scenario.deviations.len()),
            })
        })
        .collect();
    let nondeterministic: Vec<_> = summary
        .nondeterministic
        .iter()
        .map(|found| serde_json::json!({ "seed": found.seed, "difference": found.what }))
        .collect();
    serde_json::json!({
        "family": summary.family.name(),
        "runtime": if arguments.runtime == crate::arguments::Runtime::Madsim { "madsim" } else { "lab" },
        "seeds": summary.seeds,
        "repeated": summary.repeated,
        "operations": summary.operations,
        "events": summary.events,
        "crashes": summary.crashes,
        "recoveries": summary.recoveries,
        "losses": losses,
        "failed_opens": summary.failed_opens,
        "refusals": summary.refusals,
        "faults": faults,
        "fired": fired,
        "probes": probes,
        "failures": failures,
        "nondeterministic": nondeterministic,
        "cold": cold,
        "virtual_seconds": summary.virtual_time.as_secs_f64(),
        "real_seconds": cost.real.as_secs_f64(),
        "cpu_seconds": cost.cpu.as_secs_f64(),
        "seeds_per_cpu_second": cost.seeds_per_cpu_second(summary.seeds + summary.repeated),
        "resident_bytes": cost.resident,
    })
}
