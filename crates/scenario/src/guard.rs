// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Calls libraries that panic on damaged files: a panic becomes `None`, and its message is not printed.

use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside of [`without_panic`].
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
    // Unwind safe: after a panic the state of `read` is dropped, so nobody sees it half changed.
    let answer = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    answer.ok()
}
