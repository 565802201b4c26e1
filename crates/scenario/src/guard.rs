// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Calls libraries that panic on damaged files: a panic becomes `None`, and its message is not printed.

use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside of [`quietly`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `read`, or `None` if it panics. Other threads print their panics as before.
pub fn quietly<T>(read: impl FnOnce() -> T) -> Option<T> {
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
    let answer = onramp_cc::without_panic(read);
    GUARDED.set(outer);
    answer.ok()
}
