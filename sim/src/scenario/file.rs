//! Scenarios as TOML files.

use super::{
    ACKNOWLEDGED, Client, CrashPlace, EngineOptions, Expectation, Finale, Keep, Numbered, PlannedCrash,
    Scenario, first_id,
};
use crate::choices::{ABANDONED, Deviation};
use crate::disk::{Fault, crash_labels};
use crate::machine::CrashKind;
use crate::runner::{FAILURES, is_fingerprint};
use ironleaf_model::{Operation, Promise};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;

/// A file that is not a scenario: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ScenarioError {
    /// The file's name, as it was given.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    /// What was expected and what was found.
    pub message: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    promise: String,
    #[serde(default)]
    entropy: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    madsim: Option<u64>,
    #[serde(default)]
    finale: Finale,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finale_keep: Option<Keep>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    close: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    settle: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Fault>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reopen_memory_bytes: Vec<usize>,
    #[serde(default = "usual_options")]
    options: Spanned<EngineOptions>,
    clients: Vec<ClientEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    crashes: Vec<CrashEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deviations: Vec<Deviation>,
    #[serde(default)]
    expect: Option<Spanned<ExpectEntry>>,
}

/// The message of the reader of TOML, for people who do not write Rust.
fn in_words(message: &str) -> String {
    let mut words = message.trim().replace('\n', ", ");
    for number in ["expected u8", "expected u32", "expected u64", "expected usize"] {
        if let Some(before) = words.strip_suffix(number) {
            words = format!("{before}expected a whole number that is not negative");
        }
    }
    if words.ends_with("expected `pass`") {
        words.push_str("; a scenario that is to fail names its `failure`");
    }
    words
}

fn usual_options() -> Spanned<EngineOptions> {
    spanned(EngineOptions::default())
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientEntry {
    operations: Vec<Spanned<String>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CrashEntry {
    kind: CrashWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep: Option<Keep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_operation: Option<Spanned<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    during: Option<Spanned<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occurrence: Option<u32>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CrashWord {
    PowerLoss,
    ProcessDeath,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bug: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeWord {
    Pass,
}

/// What is wrong, and where in the text if that is known.
struct Problem {
    span: Option<Range<usize>>,
    message: String,
}

impl Problem {
    fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span: Some(span), message: message.into() }
    }
}

impl Scenario {
    /// Reads the text of a scenario; `file` is what errors call it.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let parsed = toml::from_str::<File>(text)
            .map_err(|error| Problem { span: error.span(), message: in_words(error.message()) });
        parsed.and_then(Self::try_from).map_err(|problem| {
            let at = problem.span.map_or(0, |span| span.start).min(text.len());
            let before = &text.as_bytes()[..at];
            let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            ScenarioError {
                file: file.to_owned(),
                line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
                column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
                message: problem.message,
            }
        })
    }

    /// The text from which [`from_toml`](Self::from_toml) reads an equal scenario.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&File::from(self)).expect("every scenario has a text form")
    }
}

impl TryFrom<File> for Scenario {
    type Error = Problem;

    fn try_from(file: File) -> Result<Self, Problem> {
        let mut ids = BTreeSet::new();
        let clients = file
            .clients
            .into_iter()
            .enumerate()
            .map(|(index, client)| read_client(index, client, &mut ids))
            .collect::<Result<Vec<_>, _>>()?;
        let crashes = file
            .crashes
            .into_iter()
            .map(|crash| read_crash(crash, &ids, clients.len()))
            .collect::<Result<_, _>>()?;
        let options_at = file.options.span();
        let options = file.options.into_inner();
        for memory_bytes in [options.memory_bytes].iter().chain(&file.reopen_memory_bytes) {
            let options = EngineOptions { memory_bytes: *memory_bytes, ..options.clone() };
            let valid = options.to_options().validate();
            valid.map_err(|error| Problem::at(options_at.clone(), error.to_string()))?;
        }
        Ok(Self {
            title: file.title,
            promise: file.promise,
            entropy: file.entropy,
            madsim: file.madsim,
            finale: file.finale,
            finale_keep: file.finale_keep,
            close: file.close,
            settle: file.settle,
            faults: file.faults,
            reopen_memory_bytes: file.reopen_memory_bytes,
            options,
            clients,
            crashes,
            deviations: file.deviations,
            expect: read_expectation(file.expect)?,
        })
    }
}

/// Operations are numbered from [`first_id`] on; `17: get k f` gives another number, from which the next ones go on.
fn read_client(index: usize, client: ClientEntry, ids: &mut BTreeSet<u32>) -> Result<Client, Problem> {
    let mut next = first_id(index);
    let mut operations = Vec::with_capacity(client.operations.len());
    for line in client.operations {
        let span = line.span();
        let line = line.into_inner();
        let (id, text) = match line.split_once(": ") {
            Some((number, text))
                if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                let id = number.parse().map_err(|_| {
                    Problem::at(span.clone(), format!("the number {number} of an operation is too large"))
                })?;
                (id, text)
            }
            _ => (next, line.as_str()),
        };
        let operation: Operation =
            text.parse().map_err(|error| Problem::at(span.clone(), format!("{error}: {text}")))?;
        if !ids.insert(id) {
            return Err(Problem::at(span, format!("another operation has the number {id}")));
        }
        next = id.saturating_add(1);
        operations.push(Numbered { id, operation: Arc::new(operation) });
    }
    Ok(Client { operations })
}

fn read_crash(crash: CrashEntry, ids: &BTreeSet<u32>, clients: usize) -> Result<PlannedCrash, Problem> {
    let at = match (crash.after_operation, crash.during) {
        (Some(operation), None) => {
            let span = operation.span();
            let operation = operation.into_inner();
            if !ids.contains(&operation) {
                return Err(Problem::at(span, format!("there is no operation {operation}")));
            }
            if crash.actor.is_some() || crash.operation.is_some() || crash.occurrence.is_some() {
                let message = "actor, operation and occurrence go with `during`, not with `after_operation`";
                return Err(Problem::at(span, message));
            }
            CrashPlace::After(operation)
        }
        (None, Some(label)) => {
            let span = label.span();
            let Some(actor) = crash.actor else {
                return Err(Problem::at(
                    span,
                    "a crash with `during` names its `actor`, such as \"client-0\"",
                ));
            };
            let is_known = |label: &str| {
                [ACKNOWLEDGED, ABANDONED].contains(&label) || crash_labels().any(|known| known == label)
            };
            if !is_known(label.get_ref()) {
                let labels = crash_labels().collect::<Vec<_>>().join("\", \"");
                let message = format!(
                    "nothing is called \"{}\"; `during` is \"{ACKNOWLEDGED}\", \"{ABANDONED}\", \"{labels}\"",
                    label.get_ref()
                );
                return Err(Problem::at(span, message));
            }
            if actor
                .strip_prefix("client-")
                .is_some_and(|number| number.parse().is_ok_and(|number: usize| number >= clients))
            {
                let message = format!("there is no {actor}; the first of the {clients} clients is client-0");
                return Err(Problem::at(span, message));
            }
            let occurrence = crash.occurrence.unwrap_or(1);
            if occurrence == 0 {
                return Err(Problem::at(span, "occurrences are counted from 1"));
            }
            CrashPlace::During { label: label.into_inner(), actor, operation: crash.operation, occurrence }
        }
        (Some(operation), Some(_)) => {
            return Err(Problem::at(operation.span(), "a crash has `after_operation` or `during`, not both"));
        }
        (None, None) => {
            return Err(Problem {
                span: None,
                message: "a crash has `after_operation` or `during`".to_owned(),
            });
        }
    };
    let kind = match crash.kind {
        CrashWord::PowerLoss => CrashKind::PowerLoss,
        CrashWord::ProcessDeath => CrashKind::ProcessDeath,
    };
    Ok(PlannedCrash { at, kind, keep: crash.keep })
}

fn read_expectation(expect: Option<Spanned<ExpectEntry>>) -> Result<Expectation, Problem> {
    let Some(expect) = expect else { return Ok(Expectation::Pass) };
    let span = expect.span();
    match expect.into_inner() {
        ExpectEntry { failure: None, bug: None, .. } => Ok(Expectation::Pass),
        ExpectEntry { outcome: None, failure: Some(fingerprint), bug } => {
            if !is_fingerprint(&fingerprint) {
                let promises = Promise::ALL.iter().map(|promise| promise.name());
                let known: Vec<_> = promises.chain(FAILURES).collect();
                let message = format!(
                    "no failure is called \"{fingerprint}\"; there are \"{}\", and each may go on with a colon and a detail",
                    known.join("\", \"")
                );
                return Err(Problem::at(span, message));
            }
            Ok(Expectation::Failure { fingerprint, bug })
        }
        ExpectEntry { outcome: Some(OutcomeWord::Pass), failure: Some(_), .. } => {
            Err(Problem::at(span, "a scenario expects `outcome = \"pass\"` or a `failure`, not both"))
        }
        ExpectEntry { failure: None, bug: Some(_), .. } => {
            Err(Problem::at(span, "a planted `bug` goes with the `failure` that it causes"))
        }
    }
}

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

impl From<&Scenario> for File {
    fn from(scenario: &Scenario) -> Self {
        let clients = scenario.clients.iter().enumerate().map(|(index, client)| {
            let mut next = first_id(index);
            let line = |numbered: &Numbered| {
                let Numbered { id, operation } = numbered;
                let line = if *id == next { operation.to_string() } else { format!("{id}: {operation}") };
                next = id.saturating_add(1);
                spanned(line)
            };
            ClientEntry { operations: client.operations.iter().map(line).collect() }
        });
        let (outcome, failure, bug) = match &scenario.expect {
            Expectation::Pass => (Some(OutcomeWord::Pass), None, None),
            Expectation::Failure { fingerprint, bug } => (None, Some(fingerprint.clone()), bug.clone()),
        };
        Self {
            title: scenario.title.clone(),
            promise: scenario.promise.clone(),
            entropy: scenario.entropy,
            madsim: scenario.madsim,
            finale: scenario.finale,
            finale_keep: scenario.finale_keep,
            close: scenario.close,
            settle: scenario.settle,
            faults: scenario.faults.clone(),
            reopen_memory_bytes: scenario.reopen_memory_bytes.clone(),
            options: spanned(scenario.options.clone()),
            clients: clients.collect(),
            crashes: scenario.crashes.iter().map(CrashEntry::from).collect(),
            deviations: scenario.deviations.clone(),
            expect: Some(spanned(ExpectEntry { outcome, failure, bug })),
        }
    }
}

impl From<&PlannedCrash> for CrashEntry {
    fn from(crash: &PlannedCrash) -> Self {
        let kind = match crash.kind {
            CrashKind::PowerLoss => CrashWord::PowerLoss,
            CrashKind::ProcessDeath => CrashWord::ProcessDeath,
        };
        let mut entry = Self {
            kind,
            keep: crash.keep,
            after_operation: None,
            during: None,
            actor: None,
            operation: None,
            occurrence: None,
        };
        match &crash.at {
            CrashPlace::After(operation) => entry.after_operation = Some(spanned(*operation)),
            CrashPlace::During { label, actor, operation, occurrence } => {
                entry.during = Some(spanned(label.clone()));
                entry.actor = Some(actor.clone());
                entry.operation = *operation;
                entry.occurrence = Some(*occurrence);
            }
        }
        entry
    }
}
