//! What must be had of a database that damage keeps from being opened: a state of its past, as far as it can be read.

use super::life::{Shared, unexpected};
use super::perform::{read_everything, sample};
use super::report::Failure;
use crate::machine::Handle;
use crate::runner::life::DIRECTORY;
use ironleaf::env::Env;
use ironleaf::{Database, ErrorKind};
use ironleaf_model::{Promise, Violation};

/// Opens the database read-only, passing over what is damaged, and judges what it shows.
pub(super) async fn salvage(shared: &Shared, env: &Env, handle: &Handle) -> Result<(), Failure> {
    let recoveries = shared.lock().recoveries;
    let mut options = shared.scenario.options_of(recoveries);
    // A read-only open holds the log's commits in memory.
    options.memory_bytes = options.memory_bytes.max(SALVAGE_MEMORY_BYTES);
    options.salvage = true;
    let database = match Database::open_read_only(env.clone(), DIRECTORY, options).await {
        Ok(database) => database,
        Err(error) => return refused(shared, &error),
    };
    let position = sample(&database).visible;
    let contents = read_everything(&database, true).await.map_err(|error| unexpected("reading", &error))?;
    let left_out: Vec<String> = database.left_out().iter().map(ToString::to_string).collect();
    for told in left_out.iter().chain(&contents.unread) {
        shared.names_damage(told)?;
    }
    handle.mark(position, || format!("salvaged position {position}; left out: {}", left_out.join("; ")));
    let trouble = shared.so_far();
    let mut state = shared.lock();
    state.refusals += 1;
    if shared.options.details {
        let mut text = format!("salvaged position {position}");
        let lines = left_out.iter().map(|error| format!("left out: {error}")).chain(contents.lines());
        lines.for_each(|line| text.push_str(&format!("\n  {line}")));
        state.recovered.push(text);
    }
    state.history.trouble(trouble);
    Ok(state.history.salvaged(position, &contents, !left_out.is_empty())?)
}

/// Enough for the logs of every scenario.
const SALVAGE_MEMORY_BYTES: usize = 4 << 20;

/// Only a manifest that is lost, damaged at its beginning, or was never there leaves nothing to show.
fn refused(shared: &Shared, error: &ironleaf::Error) -> Result<(), Failure> {
    let is_manifest = shared.trouble.damaged_files().iter().any(|name| name.starts_with("MANIFEST"));
    let is_told =
        matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotADatabase | ErrorKind::NotFound);
    if !is_told {
        return Err(unexpected("salvage", error));
    }
    shared.names_damage(&error.to_string())?;
    if !is_manifest && shared.lock().recoveries > 0 && shared.trouble.so_far().damage.lies == 0 {
        let what = format!("the manifest is whole, and yet nothing can be salvaged: {error}");
        return Err(Violation::new(Promise::Damage, what).into());
    }
    shared.lock().refusals += 1;
    Ok(())
}
