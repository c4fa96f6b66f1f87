//! The models as tests: one for each protocol, and one for each way to break it, which passes only if the model notices
//! and says what it must. `cargo loom [NAME]` runs them.
//!
//! An exported `RUSTFLAGS` replaces the flags that build the models, and nothing would be left to fail. So the alias
//! says in the environment that models are wanted, and a build without them refuses.

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if std::env::var_os("IRONLEAF_LOOM").is_some() && cfg!(not(ironleaf_loom)) {
        let refusal = Trial::test("models are built", || {
            Err("this build lacks --cfg ironleaf_loom: an exported RUSTFLAGS replaces the flags of `cargo loom`; unset it"
                .into())
        });
        return libtest_mimic::run(&arguments, vec![refusal]).exit_code();
    }
    libtest_mimic::run(&arguments, trials()).exit_code()
}

#[cfg(not(ironleaf_loom))]
fn trials() -> Vec<Trial> {
    Vec::new()
}

#[cfg(ironleaf_loom)]
fn trials() -> Vec<Trial> {
    modelled::trials()
}

#[cfg(ironleaf_loom)]
mod modelled {
    use ironleaf::sabotage::SABOTAGES;
    use ironleaf_loom_tests::{Explored, MODELS, Model, explore, note_panic};
    use libtest_mimic::{Failed, Trial};

    pub fn trials() -> Vec<Trial> {
        std::panic::set_hook(Box::new(note_panic));
        let mut trials = vec![Trial::test("every sabotage has a model", every_sabotage_has_a_model)];
        for model in MODELS {
            trials.push(Trial::test(model.name, || holds(model)));
            for (sabotage, expected) in model.sabotages {
                let name = format!("{}, sabotaged: {sabotage}", model.name);
                trials.push(Trial::test(name, || notices(model, sabotage, expected)));
            }
        }
        trials
    }

    fn every_sabotage_has_a_model() -> Result<(), Failed> {
        let is_used = |name: &str| {
            MODELS.iter().any(|model| model.sabotages.iter().any(|(sabotage, _)| *sabotage == name))
        };
        let unused: Vec<_> = SABOTAGES.iter().filter(|(name, _)| !is_used(name)).collect();
        if unused.is_empty() { Ok(()) } else { Err(format!("no model is about {unused:?}").into()) }
    }

    #[expect(clippy::print_stdout, reason = "how much was explored is what the run is for")]
    fn holds(model: &Model) -> Result<(), Failed> {
        let Explored { interleavings, failure } = explore(model, None);
        println!("{}: {interleavings} interleavings", model.name);
        match failure {
            Some(failure) => Err(format!("interleaving {interleavings}: {failure}").into()),
            None if interleavings < 2 => {
                Err("only one interleaving: the threads share nothing that loom sees".into())
            }
            None => Ok(()),
        }
    }

    fn notices(model: &Model, sabotage: &str, expected: &str) -> Result<(), Failed> {
        let Explored { interleavings, failure } = explore(model, Some(sabotage));
        match failure {
            Some(failure) if failure.contains(expected) => Ok(()),
            Some(failure) => Err(format!("failed for another reason than \"{expected}\": {failure}").into()),
            None => Err(format!("{interleavings} interleavings noticed nothing").into()),
        }
    }
}
