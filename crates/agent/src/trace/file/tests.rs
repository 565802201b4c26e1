// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use crate::config::Addresses;
use onramp_trace::{read, Flow};
use onramp_units::{Bytes, Span};

/// A trace with files of so many bytes.
fn keys(max_bytes: u64) -> (TraceKeys, Head) {
    let keys = TraceKeys {
        path: None,
        max_size: Bytes::new(max_bytes),
        keep: 2,
        look: Span::from_ms(100),
        gap: Span::from_ms(1),
        addresses: Addresses::Plain,
    };
    let head = crate::trace::head(&keys, true, "local", vec![]);
    (keys, head)
}

fn flow(number: u16) -> Record {
    Record::Flow(Flow {
        from: "10.0.0.1".into(),
        from_port: number,
        to: "10.0.0.2".into(),
        to_port: 2,
        start_fleet_ns: 0,
        duration_ns: 0,
        size_bytes: 1,
        delays: None,
        held_ns: 0,
    })
}

fn ports(path: &Path) -> Vec<u16> {
    let trace = read(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!trace.is_cut);
    trace.flows.iter().map(|flow| flow.from_port).collect()
}

/// Writes each of these records alone, and returns what became of them.
fn written(path: &Path, max_bytes: u64, numbers: std::ops::Range<u16>) -> onramp_status::Trace {
    let (keys, head) = keys(max_bytes);
    let file = File::begin(path, &keys, &head).unwrap();
    for number in numbers {
        file.write(&[flow(number)]);
    }
    let status = file.status.clone();
    file.end();
    let status = lock(&status);
    status.clone()
}

#[test]
fn a_full_file_makes_room_and_the_oldest_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let status = written(&path, 700, 0..20);
    assert_eq!((status.written, status.lost, status.error), (20, 0, None));
    let names = ["t.2", "t.1", "t"].map(|name| dir.path().join(name));
    let kept: Vec<u16> = names.iter().flat_map(|name| ports(name)).collect();
    assert_eq!(*kept.last().unwrap(), 19);
    assert!(
        kept.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{kept:?}"
    );
    assert!(kept.len() < 20 && !numbered(&path, 3).exists());
    for name in names {
        assert!(std::fs::metadata(name).unwrap().len() <= 700);
    }
}

#[test]
fn a_daemon_that_was_killed_leaves_no_half_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    written(&path, 1 << 20, 1..2);
    let mut text = std::fs::read(&path).unwrap();
    text.extend(b"{\"kind\":\"fl");
    std::fs::write(&path, text).unwrap();
    written(&path, 1 << 20, 2..3);
    assert_eq!(ports(&path), [1, 2]);
}

/// /dev/full stands for a full disk: each write to it fails so.
#[test]
fn a_full_disk_is_said_and_counted() {
    let status = written(Path::new("/dev/full"), 1 << 20, 0..2);
    assert_eq!((status.written, status.lost), (0, 2));
    let error = status.error.unwrap();
    assert!(
        error.starts_with("cannot write /dev/full: No space left"),
        "{error}"
    );
    assert!(error.ends_with("free some space, or lower trace.max_size or trace.keep"));
}

#[test]
fn a_directory_that_is_not_there_is_said_and_may_come() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub/t");
    let (keys, head) = keys(1 << 20);
    let mut writer = Writer::new(&path, &keys, &head);
    let error = writer.write("").unwrap_err().to_string();
    assert!(error.contains("make the directory"), "{error}");
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    writer.write(&line(&flow(3)).unwrap()).unwrap();
    assert_eq!(ports(&path), [3]);
}
