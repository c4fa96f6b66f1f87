//! What a power loss keeps.

use super::volume::VolumeState;
use crate::choices::{Choices, Site};

/// Decides what is kept.
pub(super) fn strike(_state: &mut VolumeState, choices: &Choices) {
    let _ = choices.pick(Site::PowerLoss, "class", 12);
}
