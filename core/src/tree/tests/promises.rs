//! Which pages a change touches, and what damage does.

use super::*;
