//! One life: open, judge the life before, let the clients go on.

use super::perform::{Performed, check, perform, read_everything, sample};
use super::report::{Failure, OperationReport};
use super::{Crash, RunOptions, probe, salvage, settle};
use crate::disk::{DamageCounts, Fault, Faults, Troubles};
use crate::machine::{Handle, TroubleHandle};
use crate::scenario::{Numbered, Scenario, client_name, end_label};
use ironleaf::env::Env;
use ironleaf::{Database, Error, ErrorKind, Options};
use ironleaf_model::{Answer, History, Outcome, Promise, Trouble, Violation};
use std::collections::BTreeMap;
use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3;

/// Where the database is on the simulated disk.
pub(super) const DIRECTORY: &str = "/db";
/// Writes that a poisoned database refuses before it is opened anew.
const REFUSED_MAX: u32 = 4;
/// Attempts to open that faults may make fail; then the faults end.
const ATTEMPTS_MAX: u32 = 3;
/// How long somebody waits before the next attempt.
const ATTEMPT_AGAIN: Duration = Duration::from_millis(10);

/// How a life ended that no crash ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// A promise was broken; the failure is in the shared state.
    Failed,
    /// The operation was reached at which the run was to stop.
    Stopped,
    /// The database was poisoned and its clients have seen it.
    Poisoned,
    /// No operation is left.
    OperationsDone,
    /// What the finale left was recovered and is as promised.
    Verified,
    /// The disk is damaged, the database says so and cannot be opened for writing.
    Refused,
}

/// What outlives a life.
pub(super) struct Shared {
    pub(super) scenario: Arc<Scenario>,
    pub(super) options: RunOptions,
    pub(super) trouble: TroubleHandle,
    state: Mutex<State>,
}

#[derive(Clone)]
pub(super) struct State {
    pub(super) history: History,
    /// For each client, the index of its next operation.
    next: Vec<usize>,
    /// Clients of this life that have operations left.
    busy: usize,
    main: Option<Waker>,
    pub(super) life: u32,
    /// Writes and syncs that had failed when this life began.
    pub(super) unsafe_changes_before: u64,
    /// Writes of this life that were refused because the database is poisoned.
    refused: u32,
    pub(super) stopped: bool,
    pub(super) finale_begun: bool,
    pub(super) failure: Option<Failure>,
    pub(super) operations: u64,
    pub(super) recoveries: u64,
    pub(super) failed_opens: u64,
    /// Databases that could not be opened for damage.
    pub(super) refusals: u64,
    pub(super) results: Vec<OperationReport>,
    pub(super) recovered: Vec<String>,
}

impl Shared {
    pub(super) fn new(scenario: Arc<Scenario>, options: RunOptions, trouble: TroubleHandle) -> Self {
        let state = State::new(&scenario);
        Self { scenario, options, trouble, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this run is about faults, or about memory that gets smaller.
    pub(super) fn makes_trouble(&self) -> bool {
        !self.scenario.faults.is_empty() || !self.scenario.reopen_memory_bytes.is_empty()
    }

    /// Whether the medium has lied so far.
    pub(super) fn is_damaged(&self) -> bool {
        self.trouble.so_far().damage.all > 0
    }

    /// Judges an error about damage: it names a place that is damaged, a file or the log as a whole.
    pub(super) fn names_damage(&self, message: &str) -> Result<(), Violation> {
        let damaged = self.trouble.damaged_files();
        let is_named = damaged.iter().any(|name| match name.as_str() {
            // It gets its name after it was written.
            "MANIFEST" | "MANIFEST.new" => {
                // A manifest that is behind the log makes the log look wrong.
                message.to_lowercase().contains("manifest") || message.contains("log")
            }
            // A record that is missed may have stood in another file.
            name if name.starts_with("log-") => message.contains("log"),
            // Entries that were never durable: any file may be missing.
            name if DIRECTORY.ends_with(name) => true,
            name => message.contains(name),
        });
        if is_named {
            return Ok(());
        }
        let what = format!("damaged are {}, and yet: {message}", damaged.join(", "));
        Err(Violation::new(Promise::Damage, what))
    }

    /// What has gone wrong below the database so far.
    pub(super) fn so_far(&self) -> Trouble {
        let Troubles { reads, changes, full, log_syncs, damage, .. } = self.trouble.so_far();
        let DamageCounts { all, log, log_rot, log_cut, lies } = damage;
        Trouble { reads, changes, full, log_syncs, damage: all, log_damage: log, log_rot, log_cut, lies }
    }

    pub(super) fn take_state(&self) -> State {
        std::mem::replace(&mut *self.lock(), State::new(&self.scenario))
    }

    pub(super) fn crashed(&self, crash: Crash) {
        let trouble = self.so_far();
        let mut state = self.lock();
        state.history.trouble(trouble);
        state.history.crashed(crash);
    }

    /// The same between two lives, for another machine in the same state.
    pub(super) fn fork(&self, trouble: TroubleHandle) -> Self {
        let state = Mutex::new(self.lock().clone());
        Self { scenario: Arc::clone(&self.scenario), options: self.options, trouble, state }
    }

    /// Keeps the first failure and ends the life.
    pub(super) fn fail(&self, failure: impl Into<Failure>) -> Ended {
        let mut state = self.lock();
        state.failure.get_or_insert(failure.into());
        state.wake_main();
        Ended::Failed
    }

    pub(super) fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    fn client_is_done(&self) {
        let mut state = self.lock();
        state.busy -= 1;
        if state.busy == 0 {
            state.wake_main();
        }
    }

    /// Waits until no client goes on.
    async fn clients_are_done(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if state.busy == 0 || !state.goes_on() {
                return Poll::Ready(());
            }
            state.main = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl State {
    fn new(scenario: &Scenario) -> Self {
        let mut history = History::new(scenario.options.limits());
        if scenario.faults.contains(&Fault::LyingSync) {
            history.may_go_back();
        }
        Self {
            history,
            next: vec![0; scenario.clients.len()],
            busy: 0,
            main: None,
            life: 0,
            unsafe_changes_before: 0,
            refused: 0,
            stopped: false,
            finale_begun: false,
            failure: None,
            operations: 0,
            recoveries: 0,
            failed_opens: 0,
            refusals: 0,
            results: Vec::new(),
            recovered: Vec::new(),
        }
    }

    /// For each client, how many operations it has begun.
    pub(super) fn begun(&self) -> &[usize] {
        &self.next
    }

    /// Whether clients may go on.
    fn goes_on(&self) -> bool {
        self.failure.is_none() && !self.stopped && !self.saw_poison()
    }

    /// Whether the clients have seen often enough that the database is poisoned.
    fn saw_poison(&self) -> bool {
        self.refused >= REFUSED_MAX
    }

    fn wake_main(&mut self) {
        if let Some(main) = self.main.take() {
            main.wake();
        }
    }
}

/// The main task of a life.
pub(super) async fn live(shared: Arc<Shared>, env: Env, handle: Handle) -> Ended {
    match try_to_live(&shared, env, handle).await {
        Ok(ended) => ended,
        Err(failure) => shared.fail(failure),
    }
}

/// An engine error where none has a reason.
pub(super) fn unexpected(doing: &str, error: &Error) -> Failure {
    Failure::new(format!("{doing}: {:?}", error.kind()), format!("{doing} failed: {error}"))
}

async fn try_to_live(shared: &Arc<Shared>, env: Env, handle: Handle) -> Result<Ended, Failure> {
    let database = match open(shared, &env, &handle).await? {
        Opened::Serving(database) => database,
        Opened::Refused => return salvage::salvage(shared, &env, &handle).await.map(|()| Ended::Refused),
    };
    // What was recovered is judged undisturbed.
    shared.trouble.set_faults(Faults::default());
    verify(shared, &database, &handle).await?;
    if shared.lock().finale_begun {
        return Ok(Ended::Verified);
    }
    shared.trouble.set_faults(shared.scenario.faults());
    start_clients(shared, &database, &env, &handle);
    shared.clients_are_done().await;
    {
        let mut state = shared.lock();
        state.main = None;
        if state.failure.is_some() {
            return Ok(Ended::Failed);
        }
        if state.stopped {
            return Ok(Ended::Stopped);
        }
        if state.saw_poison() {
            return Ok(Ended::Poisoned);
        }
    }
    if shared.makes_trouble() && !shared.is_damaged() {
        probe::probe(shared, &database, &handle).await?;
    }
    if shared.scenario.settle && !shared.is_damaged() && shared.lock().history.trouble_of_life().changes == 0
    {
        settle::settle(&shared.scenario, &database, &env).await?;
    }
    sound(shared, &database, &[]).await?;
    if shared.scenario.close {
        match database.close().await {
            Ok(()) => shared.lock().history.closed(),
            Err(error)
                if error.kind() == ErrorKind::DurabilityUnknown
                    && (shared.is_damaged() || shared.lock().history.trouble_of_life().changes > 0) => {}
            Err(error) => return Err(unexpected("close", &error)),
        }
    }
    shared.lock().finale_begun = true;
    Ok(Ended::OperationsDone)
}

enum Opened {
    Serving(Database),
    /// For damage, which lasts.
    Refused,
}

/// Opens the database; where faults are a reason to fail, again.
async fn open(shared: &Shared, env: &Env, handle: &Handle) -> Result<Opened, Failure> {
    let (recoveries, is_last) = {
        let state = shared.lock();
        (state.recoveries, state.finale_begun)
    };
    if is_last {
        shared.trouble.end();
    } else {
        shared.trouble.set_faults(shared.scenario.faults());
    }
    let options = shared.scenario.options_of(recoveries);
    let mut failures = 0;
    loop {
        let before = shared.so_far();
        let error = match Database::open(env.clone(), DIRECTORY, options.clone()).await {
            Ok(database) => return Ok(Opened::Serving(database)),
            Err(error) => error,
        };
        let is_refused = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotADatabase);
        if is_refused && shared.is_damaged() {
            shared.names_damage(&error.to_string())?;
            if failures >= ATTEMPTS_MAX {
                return Ok(Opened::Refused);
            }
        }
        let since = shared.so_far().since(before);
        let is_excused = match error.kind() {
            ErrorKind::Io => since.reads + since.changes > 0,
            ErrorKind::DiskFull => since.full > 0,
            // Operations of the attempt before are still in flight.
            ErrorKind::Locked => failures > 0,
            _ => is_refused && shared.is_damaged(),
        };
        if !is_excused {
            return Err(unexpected("open", &error));
        }
        handle.mark(failures.into(), || format!("could not open: {error}"));
        if error.kind() != ErrorKind::Locked {
            failures += 1;
            let mut state = shared.lock();
            state.failed_opens += 1;
            if shared.options.details {
                state.recovered.push(format!("could not open: {error}"));
            }
        }
        if failures >= ATTEMPTS_MAX {
            shared.trouble.end();
        }
        handle.sleep(ATTEMPT_AGAIN).await;
    }
}

/// Reads everything that was recovered, and judges the life before by it.
async fn verify(shared: &Shared, database: &Database, handle: &Handle) -> Result<(), Failure> {
    let now = sample(database);
    let contents = read_everything(database, shared.is_damaged())
        .await
        .map_err(|error| unexpected("reading", &error))?;
    sound(shared, database, &contents.unread).await?;
    let trouble = shared.so_far();
    let mut state = shared.lock();
    state.history.trouble(trouble);
    let judged = state.history.recovered(now, &contents);
    let memory_bytes = shared.scenario.options_of(state.recoveries).memory_bytes;
    state.history.tight(memory_bytes < shared.scenario.options.memory_bytes);
    state.refused = 0;
    state.unsafe_changes_before = shared.trouble.so_far().unsafe_changes;
    state.recoveries += 1;
    state.life = u32::try_from(state.recoveries).unwrap_or(u32::MAX) - 1;
    let entries: usize = contents.objects.iter().map(|held| held.entries.len()).sum();
    handle.mark(now.visible ^ (entries as u64) << 32, || {
        format!("recovered position {}: {} objects, {entries} entries", now.visible, contents.objects.len())
    });
    if shared.options.details {
        let mut text = format!("opened at position {}", now.visible);
        for line in contents.lines() {
            text.push_str("\n  ");
            text.push_str(&line);
        }
        state.recovered.push(text);
    }
    Ok(judged?)
}

/// Judges the engine's own check: it finds nothing, or damage where there is some; and what reads found, it finds.
pub(super) async fn sound(shared: &Shared, database: &Database, unread: &[String]) -> Result<(), Failure> {
    let findings = check(database).await.map_err(|error| unexpected("check", &error))?;
    for error in unread {
        shared.names_damage(error)?;
    }
    match findings.first() {
        None => match unread.first() {
            None => Ok(()),
            Some(error) => {
                let what = format!("check finds nothing, but a read says: {error}");
                Err(Violation::new(Promise::Damage, what).into())
            }
        },
        Some(_) if shared.is_damaged() => Ok(()),
        Some(first) => {
            let message = format!("check found {} problems, the first: {first}", findings.len());
            Err(Failure::new("B11 check", message))
        }
    }
}

fn start_clients(shared: &Arc<Shared>, database: &Database, env: &Env, handle: &Handle) {
    let mut state = shared.lock();
    let clients = shared.scenario.clients.iter().zip(&state.next).enumerate();
    let ready: Vec<usize> = clients
        .filter(|(_, (client, next))| **next < client.operations.len())
        .map(|(index, _)| index)
        .collect();
    state.busy = ready.len();
    drop(state);
    for index in ready {
        let client = Client {
            shared: Arc::clone(shared),
            index,
            database: database.clone(),
            env: env.clone(),
            handle: handle.clone(),
        };
        handle.spawn(client_name(index), Box::pin(client.go_on()));
    }
}

struct Client {
    shared: Arc<Shared>,
    index: usize,
    database: Database,
    env: Env,
    handle: Handle,
}

impl Client {
    /// Carries out the operations that are left.
    async fn go_on(self) {
        let mut snapshots = BTreeMap::new();
        let mut held = None;
        let scenario = Arc::clone(&self.shared.scenario);
        let operations = &scenario.clients[self.index].operations;
        let first = self.shared.lock().next[self.index];
        for numbered in &operations[first..] {
            self.handle.set_operation(Some(numbered.id));
            self.env.point("client").await;
            let Some(number) = self.begin(numbered) else { return };
            let outcome = perform(&self.database, &mut snapshots, &numbered.operation).await;
            // What was held during this operation goes; what it leaves is held during the next.
            drop(held.take());
            let goes_on = match outcome {
                Performed::Ended(outcome) => self.end(numbered, number, outcome),
                Performed::Abandoned(future) => {
                    held = future;
                    self.abandon(numbered, number)
                }
            };
            if !goes_on {
                return;
            }
            self.handle.crash_point(end_label(&numbered.operation));
            if self.handle.is_crashing() {
                // This was the client's last act.
                return pending().await;
            }
        }
        self.handle.set_operation(None);
        drop((held, snapshots));
        self.shared.client_is_done();
    }

    /// The numbers of the operation in the history and in the results; `None` if the run is over.
    fn begin(&self, numbered: &Numbered) -> Option<(usize, usize)> {
        let (now, trouble) = (sample(&self.database), self.shared.so_far());
        let mut state = self.shared.lock();
        if !state.goes_on() {
            return None;
        }
        state.history.trouble(trouble);
        state.next[self.index] += 1;
        let client = u32::try_from(self.index).unwrap_or(u32::MAX);
        match state.history.begin(client, numbered.id, Arc::clone(&numbered.operation), now) {
            Ok(number) => {
                if self.shared.options.details {
                    let result = OperationReport {
                        life: state.life,
                        client: self.index,
                        id: numbered.id,
                        operation: numbered.operation.to_string(),
                        outcome: None,
                    };
                    state.results.push(result);
                }
                let result = state.results.len().saturating_sub(1);
                drop(state);
                self.handle.mark(u64::from(numbered.id), || format!("begins: {}", numbered.operation));
                Some((number, result))
            }
            Err(violation) => {
                drop(state);
                self.shared.fail(violation);
                None
            }
        }
    }

    /// Whether the client may go on.
    fn end(&self, numbered: &Numbered, (number, result): (usize, usize), outcome: Outcome) -> bool {
        self.handle.mark(digest(&outcome), || format!("ends: {outcome}"));
        let (now, trouble) = (sample(&self.database), self.shared.so_far());
        let mut state = self.shared.lock();
        if self.shared.options.details
            && let Some(report) = state.results.get_mut(result)
        {
            report.outcome = Some(outcome.to_string());
        }
        state.operations += 1;
        state.history.trouble(trouble);
        if let Outcome::Failed { kind: ErrorKind::Poisoned, .. } = outcome {
            state.refused += 1;
            if state.saw_poison() {
                state.wake_main();
            }
        }
        let damage = match &outcome {
            Outcome::Failed { kind: ErrorKind::Corruption, message } => Some(message.clone()),
            Outcome::Failed { kind: ErrorKind::Poisoned, message } if self.shared.is_damaged() => {
                Some(message.clone())
            }
            _ => None,
        };
        let mut judged = state.history.end(number, outcome, now);
        if let (Ok(()), Some(message)) = (&judged, damage) {
            judged = self.shared.names_damage(&message);
        }
        if judged.is_ok() {
            judged = within_budget(&self.shared.scenario.options_of(state.recoveries - 1), &self.database);
        }
        self.stop_after(numbered, &mut state);
        let goes_on = state.goes_on();
        drop(state);
        if let Err(violation) = judged {
            self.shared.fail(violation);
            return false;
        }
        goes_on
    }

    /// Leaves the operation unknown. Whether the client may go on.
    fn abandon(&self, numbered: &Numbered, (number, result): (usize, usize)) -> bool {
        self.handle.mark(u64::MAX, || "abandons it".to_owned());
        let now = sample(&self.database);
        let mut state = self.shared.lock();
        if let Err(violation) = state.history.abandoned(number, now) {
            drop(state);
            self.shared.fail(violation);
            return false;
        }
        if self.shared.options.details
            && let Some(report) = state.results.get_mut(result)
        {
            report.outcome = Some("unknown: abandoned".to_owned());
        }
        state.operations += 1;
        self.stop_after(numbered, &mut state);
        state.goes_on()
    }

    /// Ends the run if this was the operation until which it was to go.
    fn stop_after(&self, numbered: &Numbered, state: &mut State) {
        if self.shared.options.until == Some(numbered.id) {
            state.stopped = true;
            state.wake_main();
        }
    }
}

/// Whether memory is within the budget.
fn within_budget(options: &Options, database: &Database) -> Result<(), Violation> {
    let (metrics, budget) = (database.metrics(), options.memory_bytes as u64);
    let (cache, memtables) = (metrics.cache_bytes, metrics.memtable_bytes);
    if cache + memtables <= budget {
        return Ok(());
    }
    let what = format!("{cache} bytes of pages and {memtables} bytes of edits are more than {budget}");
    Err(Violation::new(Promise::Memory, what))
}

/// A hash of everything that an operation answered.
pub(super) fn digest(outcome: &Outcome) -> u64 {
    let mut hash = Xxh3::new();
    let mut put = |tag: u8, bytes: &[u8]| {
        hash.update(&[tag]);
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    match outcome {
        Outcome::Committed { position, outcomes } => {
            put(1, &position.to_le_bytes());
            for outcome in outcomes {
                match outcome {
                    None => put(2, &[]),
                    Some(value) => put(3, value),
                }
            }
        }
        Outcome::Transacted { position, answers } => {
            put(27, &position.to_le_bytes());
            for answer in answers {
                put(28, &digest(&Outcome::Answered(answer.clone())).to_le_bytes());
            }
        }
        Outcome::Answered(Answer::Value(None)) => put(2, &[]),
        Outcome::Answered(Answer::Value(Some(value))) => put(3, value),
        Outcome::Answered(Answer::Present(present)) => put(4, &[u8::from(*present)]),
        Outcome::Answered(Answer::Count(count)) => put(5, &count.to_le_bytes()),
        Outcome::Answered(Answer::Kind(kind)) => put(6, &[kind.map_or(0, |kind| 1 + kind as u8)]),
        Outcome::Answered(Answer::Entries(entries)) => {
            for (name, value) in entries {
                put(7, name);
                put(8, value);
            }
        }
        Outcome::Answered(Answer::Keys(keys)) => {
            for (key, kind) in keys {
                put(9 + *kind as u8, key);
            }
        }
        Outcome::Answered(Answer::WrongKind) => put(20, &[]),
        Outcome::Snapshot { position } => put(21, &position.to_le_bytes()),
        Outcome::Flushed { position } => put(22, &position.to_le_bytes()),
        Outcome::Checkpointed { position } => put(29, &position.to_le_bytes()),
        Outcome::Checked { findings } => findings.iter().for_each(|finding| put(23, finding.as_bytes())),
        Outcome::Done => put(24, &[]),
        Outcome::Skipped => put(25, &[]),
        Outcome::Failed { message, .. } => put(26, message.as_bytes()),
    }
    hash.digest()
}
