// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A library that panics at a damaged file prints nothing. A binary of its own: the hook is the process's.

use onramp_scenario::quietly;
use std::panic::{set_hook, take_hook};
use std::sync::atomic::{AtomicUsize, Ordering};

static PRINTED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn only_panics_outside_of_the_guard_are_printed() {
    let before = take_hook();
    set_hook(Box::new(|_| {
        PRINTED.fetch_add(1, Ordering::Relaxed);
    }));
    assert_eq!(quietly(|| 3), Some(3));
    assert_eq!(quietly(|| -> u32 { panic!("damaged") }), None);
    assert_eq!(PRINTED.load(Ordering::Relaxed), 0);
    let other = std::thread::spawn(|| panic!("a defect"));
    assert!(other.join().is_err());
    assert_eq!(PRINTED.load(Ordering::Relaxed), 1);
    set_hook(before);
}
