//! A process that is killed loses no acknowledged commit, splits no batch, and leaves a sound directory.
//!
//! A child process runs writers at all levels and reports each acknowledgement through a pipe, after the commit
//! returned. It is killed by SIGKILL at an arbitrary moment, often while it recovers or checkpoints, fifty times over
//! on one directory. After each kill the directory, or a copy of it while the next child recovers the original, is
//! opened and compared with what was reported. This is the real disk: nothing here is simulated.
#![expect(clippy::disallowed_methods, reason = "starts processes, kills and copies files")]
#![expect(clippy::print_stdout, reason = "the child reports through its standard output")]

use ironleaf::{Database, Durability, Options, WriteBatch, env::os::environment};
use libtest_mimic::{Arguments, Failed, Trial};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Holds the directory in a child's environment.
const CHILD: &str = "IRONLEAF_SIGKILL_DIRECTORY";
const KILLS: u64 = 50;
const WRITERS: usize = 4;
/// How many of its commits a writer's log of members remembers.
const REMEMBERED: u64 = 1000;
/// A writer's scratch object is deleted and begun anew every so many commits.
const SCRATCH: u64 = 50;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    if let Some(directory) = std::env::var_os(CHILD) {
        let ended = runtime().block_on(write_until_killed(Path::new(&directory)));
        println!("the child's writers ended: {ended:?}");
        return ExitCode::FAILURE;
    }
    let trial = Trial::test("acknowledged_commits_survive_sigkill_and_no_batch_is_split", || {
        kill_and_compare().map_err(|error| Failed::from(error.to_string()))
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn runtime() -> tokio::runtime::Runtime {
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    workers.expect("the machine can start a few threads")
}

/// Small enough that checkpoints and changes of log segment happen all the time.
fn options() -> Options {
    Options {
        memory_bytes: 1 << 20,
        log_segment_bytes: 64 << 10,
        page_bytes: 1 << 10,
        page_segment_bytes: 256 << 10,
        ..Options::default()
    }
}

async fn open(directory: &Path) -> Outcome<Database> {
    Ok(Database::open(environment()?, directory, options()).await?)
}

fn object(writer: usize, part: &str) -> String {
    format!("writer {writer}: {part}")
}

fn number(sequence: u64) -> [u8; 8] {
    sequence.to_be_bytes()
}

fn sequence(bytes: &[u8]) -> Outcome<u64> {
    Ok(u64::from_be_bytes(bytes.try_into()?))
}

/// The values that a writer's commit stores: lengths vary, contents are its own.
fn payload(writer: usize, sequence: u64) -> Vec<u8> {
    let len = 8 + (sequence * 131 + writer as u64 * 17) % 700;
    number(sequence).into_iter().cycle().take(usize::try_from(len).unwrap_or(8)).collect()
}

fn level(writer: usize, sequence: u64) -> Durability {
    match (writer, sequence % 8) {
        (0, _) | (2 | 3, 0) => Durability::Synced,
        (1, _) | (_, 1..=4) => Durability::Written,
        _ => Durability::Buffered,
    }
}

/// One commit of a writer: five objects, with counted and blind writes, removals and deletions.
fn batch(writer: usize, sequence: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.durability(level(writer, sequence));
    batch.insert(object(writer, "first"), "sequence", number(sequence));
    batch.put(object(writer, "log"), number(sequence));
    if sequence > REMEMBERED {
        batch.remove(object(writer, "log"), number(sequence - REMEMBERED));
    }
    batch.set(object(writer, "values"), number(sequence % 300), payload(writer, sequence));
    if sequence.is_multiple_of(SCRATCH) {
        batch.delete(object(writer, "scratch"));
    }
    batch.set(object(writer, "scratch"), number(sequence), b"");
    batch.set(object(writer, "last"), "sequence", number(sequence));
    batch
}

async fn last_sequence(database: &Database, writer: usize, part: &str) -> Outcome<u64> {
    let stored = database.get(object(writer, part), "sequence").await?;
    stored.map_or(Ok(0), |bytes| sequence(&bytes))
}

/// The child: every writer goes on from what was recovered. Returns only on failure.
async fn write_until_killed(directory: &Path) -> Outcome<()> {
    let database = open(directory).await?;
    println!("opened");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let database = database.clone();
        let first = last_sequence(&database, writer, "first").await? + 1;
        writers.spawn(async move {
            for sequence in first.. {
                let commit = database.commit(batch(writer, sequence)).await?;
                let before = (sequence > 1).then(|| number(sequence - 1).to_vec());
                if commit.outcomes != [before] {
                    return Err(
                        format!("writer {writer}: insert {sequence} saw {:?}", commit.outcomes).into()
                    );
                }
                if level(writer, sequence) > Durability::Buffered {
                    let mut pipe = std::io::stdout().lock();
                    writeln!(pipe, "{writer} {sequence}")?;
                    pipe.flush()?;
                }
            }
            Outcome::Ok(())
        });
    }
    match writers.join_next().await {
        Some(ended) => ended?,
        None => Ok(()),
    }
}

/// What is known of a writer's commits.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The last one that was acknowledged at a level that survives the process.
    acknowledged: u64,
    /// The last one that an open recovered.
    recovered: u64,
}

fn kill_and_compare() -> Outcome<()> {
    let scratch = tempfile::tempdir()?;
    let directory = scratch.path().join("database");
    let copy = scratch.path().join("copy");
    let runtime = runtime();
    let mut known = [Known::default(); WRITERS];
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let (mut killed_at_work, mut killed_at_open) = (0, 0);
    for kill in 0..KILLS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let delay = Duration::from_micros(500 << (random % 11)) + Duration::from_micros(random % 997);
        let moment = if kill % 3 == 2 { Moment::AfterStart(delay) } else { Moment::AfterOpen(delay) };
        let opened =
            run_and_kill(&directory, moment, &mut known).map_err(|error| format!("kill {kill}: {error}"))?;
        *(if opened { &mut killed_at_work } else { &mut killed_at_open }) += 1;
        if !directory.exists() {
            continue;
        }
        // Every other time the original stays as the kill left it, and the next child recovers it.
        let place = if kill.is_multiple_of(2) { &directory } else { &copy };
        if place == &copy {
            copy_directory(&directory, &copy)?;
        }
        let compared = runtime.block_on(compare(place, &mut known));
        compared.map_err(|error| format!("after kill {kill}, {moment:?}: {error}"))?;
    }
    if killed_at_work < KILLS / 2 || killed_at_open == 0 || known.iter().any(|known| known.acknowledged < 100)
    {
        return Err(format!(
            "only {killed_at_work} kills met a working child, {killed_at_open} an opening one"
        )
        .into());
    }
    Ok(())
}

/// When a child is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// This long after its start: often while it opens the database.
    AfterStart(Duration),
    /// This long after it reported that the database is open.
    AfterOpen(Duration),
}

/// Starts a child, kills it, and takes in what it reported. Whether it had opened the database.
fn run_and_kill(directory: &Path, moment: Moment, known: &mut [Known]) -> Outcome<bool> {
    let mut child: Child = Command::new(std::env::current_exe()?)
        .env(CHILD, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = child.stdout.take().ok_or("the child has a pipe")?;
    let (opened, is_open) = mpsc::channel();
    let reports = std::thread::spawn(move || {
        // A line without an end was cut off by the kill, so it was not reported.
        let mut lines = Vec::new();
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while pipe.read_line(&mut line).is_ok_and(|len| len > 0) && line.ends_with('\n') {
            if lines.is_empty() {
                // Nobody listens if the kill does not wait for it.
                let _ = opened.send(());
            }
            lines.push(std::mem::take(&mut line));
        }
        lines
    });
    let delay = match moment {
        Moment::AfterStart(delay) => delay,
        Moment::AfterOpen(delay) => {
            // A child that does not get that far is reported below.
            let _ = is_open.recv_timeout(Duration::from_secs(30));
            delay
        }
    };
    std::thread::sleep(delay);
    child.kill()?;
    let status = child.wait()?;
    let lines = reports.join().map_err(|_| "the reader of the pipe panicked")?;
    if matches!(moment, Moment::AfterOpen(_)) && lines.is_empty() {
        return Err("the child did not open the database within 30 seconds".into());
    }
    if status.signal() != Some(9) {
        return Err(format!("the child ended by itself, {status}: {:?}", lines.last()).into());
    }
    for line in lines.iter().filter(|line| *line != "opened\n") {
        let (writer, sequence) =
            line.trim_end().split_once(' ').ok_or_else(|| format!("unknown report {line:?}"))?;
        let known = &mut known[writer.parse::<usize>()?];
        known.acknowledged = known.acknowledged.max(sequence.parse()?);
    }
    Ok(!lines.is_empty())
}

fn copy_directory(from: &Path, to: &Path) -> Outcome<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

async fn compare(directory: &Path, known: &mut [Known; WRITERS]) -> Outcome<()> {
    let database = open(directory).await?;
    for (writer, known) in known.iter_mut().enumerate() {
        let last = last_sequence(&database, writer, "last").await?;
        if last < known.acknowledged.max(known.recovered) {
            return Err(format!(
                "writer {writer}: commit {} was acknowledged and {} recovered before, but {last} is the last one",
                known.acknowledged, known.recovered
            )
            .into());
        }
        known.recovered = last;
        whole(&database, writer, last)
            .await
            .map_err(|error| format!("writer {writer} at {last}: {error}"))?;
    }
    let report = database.check().await?;
    if !report.findings.is_empty() {
        return Err(format!("check found {:?}", report.findings).into());
    }
    database.close().await?;
    Ok(())
}

/// Every object holds exactly what the commits up to `last` left in it.
async fn whole(database: &Database, writer: usize, last: u64) -> Outcome<()> {
    let first = last_sequence(database, writer, "first").await?;
    if first != last {
        return Err(format!("a batch was split: the first object is at {first}").into());
    }
    if last == 0 {
        return Ok(());
    }
    let log = numbers(database, &object(writer, "log")).await?;
    let remembered: Vec<u64> = (last.saturating_sub(REMEMBERED) + 1..=last).collect();
    if log != remembered {
        return Err(
            format!("the log has {} members, {:?} to {:?}", log.len(), log.first(), log.last()).into()
        );
    }
    let scratch = numbers(database, &object(writer, "scratch")).await?;
    let since: Vec<u64> = ((last - last % SCRATCH).max(1)..=last).collect();
    if scratch != since {
        return Err(format!("the scratch object holds {scratch:?}").into());
    }
    for sequence in last.saturating_sub(299).max(1)..=last {
        let value = database.get(object(writer, "values"), number(sequence % 300)).await?;
        if value.as_deref() != Some(&payload(writer, sequence)) {
            return Err(format!("the value of commit {sequence} is {value:?}").into());
        }
    }
    Ok(())
}

async fn numbers(database: &Database, key: &str) -> Outcome<Vec<u64>> {
    let mut found = Vec::new();
    let mut scan = database.scan(key, ..);
    while let Some((name, _)) = scan.next().await? {
        found.push(sequence(&name)?);
    }
    if database.len(key).await? != found.len() as u64 {
        return Err(format!(
            "{key} has {} entries but its length is {}",
            found.len(),
            database.len(key).await?
        )
        .into());
    }
    Ok(found)
}
