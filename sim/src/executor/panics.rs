//! Panics of simulated tasks are outcomes, not noise: they are caught with their message and place, and nothing is
//! printed.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `body`; a panic in it becomes its message and the place it was raised at.
pub(crate) fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    // Only a hook sees the place. It leaves panics outside of `caught` to the hook that was there before.
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| if CATCHING.get() { keep(info) } else { previous(info) }));
    });
    let outer = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(outer);
    result.map_err(|payload| CAUGHT.take().unwrap_or_else(|| message(&*payload).to_owned()))
}

fn keep(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or_else(String::new, |at| format!(" ({}:{})", at.file(), at.line()));
    let text = format!("{}{place}", message(info.payload()));
    CAUGHT.with_borrow_mut(|kept| {
        kept.get_or_insert(text);
    });
}

fn message(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a panic without a message"
    }
}
