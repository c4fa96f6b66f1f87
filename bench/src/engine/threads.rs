use crate::Outcome;
use crate::data::Record;
use crate::measure::Tally;
use std::time::{Duration, Instant};

/// Lets a thread for each writer commit for `time`, for engines whose commit blocks.
pub(super) fn commit_concurrently(
    writers: u32,
    time: Duration,
    commit: impl Fn(Record, u64) -> Outcome<()> + Sync,
) -> Outcome<Tally> {
    let start = Instant::now();
    let operations = std::thread::scope(|scope| {
        let writer = |object| {
            let commit = &commit;
            scope.spawn(move || {
                let mut commits = 0;
                while start.elapsed() < time {
                    commit(Record { object, field: commits % 1000 }, u64::from(commits))?;
                    commits += 1;
                }
                Outcome::Ok(u64::from(commits))
            })
        };
        let threads: Vec<_> = (0..writers).map(writer).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a writer panicked")?)
            .sum::<Outcome<u64>>()
    })?;
    Ok(Tally { operations, ..Tally::default() })
}
