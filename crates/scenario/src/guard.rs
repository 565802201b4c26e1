//! Calls of libraries that panic at damaged files: the caller gets an answer, and nothing is printed.

use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is an answer.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `read`, or `None` if it panics. Other threads print their panics as before.
pub fn without_panic<T>(read: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                print(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    // After a panic nobody sees what `read` had changed: the readers here are dropped.
    let answer = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    answer.ok()
}
