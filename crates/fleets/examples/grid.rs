// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The table of errors and sigmas in docs/clock.md: `cargo run --release -p onramp-fleets --example grid`, a quarter of an hour on
//! two cores. Arguments choose rows by how their names begin. Progress goes to standard error.

use std::{
    env,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Mutex,
    },
    thread,
};

use onramp_fleets::grid::{rows, TITLE};

const SECONDS: i64 = 30;

fn main() {
    let (mut rows, large) = (rows(&[3, 4, 8, 20], 2), rows(&[100], 1));
    for (row, large) in rows.iter_mut().zip(large) {
        // One of each kind: with bursts, those of 300 ms.
        row.cells.extend(large.cells.get(2).or(large.cells.first()));
    }
    let asked: Vec<String> = env::args().skip(1).collect();
    rows.retain(|row| asked.is_empty() || asked.iter().any(|name| row.what.starts_with(name)));
    let (next, lines) = (AtomicUsize::new(0), Mutex::new(vec![None; rows.len()]));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(row) = rows.get(n) else { return };
                let line = row.line(&row.run(SECONDS));
                eprintln!("{} of {}: {line}", n + 1, rows.len());
                lines.lock().expect("nobody panics")[n] = Some(line);
            });
        }
    });
    println!("{TITLE}");
    for line in lines
        .into_inner()
        .expect("nobody panics")
        .into_iter()
        .flatten()
    {
        println!("{line}");
    }
}
