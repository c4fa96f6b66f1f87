//! What must work once the faults have ended: everything, unless a write or a sync failed before; then every write is
//! refused, and reads go on.
//!
//! The probe's operations go through the history like those of any client, so what they answer is judged as well.

use super::life::{Shared, digest};
use super::perform::{Performed, perform, sample};
use super::report::{Failure, OperationReport};
use crate::machine::Handle;
use ironleaf::{Database, ErrorKind};
use ironleaf_model::operation::ScanEnd;
use ironleaf_model::{Answer, Edit, Operation, Outcome, Promise, Read, Violation, Write};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Long after every delay that a wake-up can get.
const LEARNT: Duration = Duration::from_millis(100);

/// Operations of the probe are numbered from here.
const FIRST_ID: u32 = 900_001;

/// Ends the faults and tries everything once.
pub(super) async fn probe(shared: &Shared, database: &Database, handle: &Handle) -> Result<(), Failure> {
    shared.trouble.end();
    // Whoever drives an operation that has failed may be delayed, and learns of it only then.
    handle.sleep(LEARNT).await;
    let number = shared.lock().recoveries;
    let mut probe = Probe { shared, database, handle, next_id: FIRST_ID };
    let unsafe_before = shared.trouble.so_far().unsafe_changes - shared.lock().unsafe_changes_before;
    let checkpoint = probe.ask(Operation::Checkpoint).await?;
    let edit =
        Edit::Set { key: b"probe".to_vec(), field: b"life".to_vec(), value: number.to_string().into_bytes() };
    let write = Write { edits: vec![edit], durability: ironleaf::Durability::Synced };
    let written = probe.ask(Operation::Write(write)).await?;
    let is_refused = |outcome: &Outcome| {
        matches!(outcome, Outcome::Failed { kind: ErrorKind::Poisoned | ErrorKind::DurabilityUnknown, .. })
    };
    if unsafe_before > 0 && !is_refused(&written) {
        let what = format!("{unsafe_before} writes or syncs failed, and yet a commit later {written}");
        return Err(Violation::new(Promise::FailedChange, what).into());
    }
    let changes = shared.lock().history.trouble_of_life().changes;
    for (name, outcome) in [("a checkpoint", &checkpoint), ("a commit", &written)] {
        if changes == 0 && matches!(outcome, Outcome::Failed { .. }) {
            let what = format!("the faults have ended and nothing is poisoned, but {name} {outcome}");
            return Err(Violation::new(Promise::Progress, what).into());
        }
    }
    let Outcome::Answered(Answer::Keys(keys)) = probe.ask(keys()).await? else { return Ok(()) };
    for (key, _) in keys {
        let scan = Read::Scan { key, from: None, to: ScanEnd::Open, limit: None, is_reverse: false };
        probe.ask(Operation::Read(scan)).await?;
    }
    Ok(())
}

const fn keys() -> Operation {
    Operation::Read(Read::Keys { prefix: Vec::new() })
}

struct Probe<'a> {
    shared: &'a Shared,
    database: &'a Database,
    handle: &'a Handle,
    next_id: u32,
}

impl Probe<'_> {
    async fn ask(&mut self, operation: Operation) -> Result<Outcome, Failure> {
        let (id, client) = (self.next_id, self.shared.scenario.clients.len());
        self.next_id += 1;
        let operation = Arc::new(operation);
        let (now, trouble) = (sample(self.database), self.shared.so_far());
        let number = {
            let mut state = self.shared.lock();
            state.history.trouble(trouble);
            let client = u32::try_from(client).unwrap_or(u32::MAX);
            state.history.begin(client, id, Arc::clone(&operation), now)?
        };
        self.handle.mark(u64::from(id), || format!("probes: {operation}"));
        let outcome = perform(self.database, &mut BTreeMap::new(), &operation).await;
        let outcome = match outcome {
            Performed::Ended(outcome) => outcome,
            Performed::Abandoned(_) => Outcome::Done,
        };
        self.handle.mark(digest(&outcome), || format!("ends: {outcome}"));
        let (now, trouble) = (sample(self.database), self.shared.so_far());
        let mut state = self.shared.lock();
        if self.shared.options.details {
            let (life, operation) = (state.life, operation.to_string());
            let outcome = Some(outcome.to_string());
            state.results.push(OperationReport { life, client, id, operation, outcome });
        }
        state.history.trouble(trouble);
        state.history.end(number, outcome.clone(), now)?;
        Ok(outcome)
    }
}
