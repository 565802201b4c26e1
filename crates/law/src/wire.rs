// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tests of law/wire.h, which the kernel alone calls: in the simulator each byte takes its time.
use crate::raw;

/// 0.8 ns a byte: 10 Gbit/s.
const LINE_Q16: u32 = 52_429;
const PATH_NS: i64 = 5_000;
const MTU: u32 = 1448;

/// What samples of a segment of 16 kB show, whose packets arrive with these ns a byte between them.
fn seen(q16: u32, noise_ns: impl Fn(u32) -> i64) -> raw::onr_wire {
    let mut wire = raw::onr_wire::default();
    for number in 0..1_000_u32 {
        let offset = number * 41 % 16_000;
        let packets = u64::from((offset + 1).next_multiple_of(MTU));
        let taken_ns = (packets * u64::from(q16)) >> 16;
        let delay_ns = PATH_NS + taken_ns as i64 + noise_ns(number);
        // SAFETY: the reference is valid for the call.
        unsafe { raw::onr_wire_sample(&mut wire, offset, delay_ns) };
    }
    // SAFETY: as above.
    assert_ne!(unsafe { raw::onr_wire_has_enough(&wire) }, 0);
    wire
}

fn sooner_q16(wire: &raw::onr_wire, line_q16: u32) -> u32 {
    // SAFETY: the reference is valid for the call.
    unsafe { raw::onr_wire_sooner_q16(wire, line_q16) }
}

#[test]
fn a_wire_of_the_line_rate_is_known_in_spite_of_queues() {
    let queue_ns = |number| i64::from(number * 7919 % 97) * 500;
    assert_eq!(sooner_q16(&seen(LINE_Q16, |_| 0), LINE_Q16), 0);
    assert_eq!(sooner_q16(&seen(LINE_Q16, queue_ns), LINE_Q16), 0);
}

#[test]
fn a_segment_that_arrives_whole_has_no_time_between_its_bytes() {
    assert_eq!(sooner_q16(&seen(0, |_| 0), LINE_Q16), LINE_Q16);
}

#[test]
fn a_line_that_is_faster_than_configured_has_its_own_time() {
    let found_q16 = 10 * LINE_Q16 - sooner_q16(&seen(LINE_Q16, |_| 0), 10 * LINE_Q16);
    assert!(
        (LINE_Q16 / 2..2 * LINE_Q16).contains(&found_q16),
        "{found_q16}"
    );
}

#[test]
fn an_unknown_line_rate_stays_unknown() {
    assert_eq!(sooner_q16(&seen(LINE_Q16, |_| 0), 0), 0);
}

#[test]
fn few_samples_say_nothing_and_any_samples_are_safe() {
    let mut wire = raw::onr_wire::default();
    for number in 0..63 {
        for offset in [0, 8_192, u32::MAX] {
            let delay_ns = [i64::MIN, i64::MAX, 0][number % 3];
            // SAFETY: the reference is valid for the call.
            unsafe { raw::onr_wire_sample(&mut wire, offset, delay_ns) };
        }
    }
    let wire_of_few = raw::onr_wire {
        far_byte: raw::onr_wire_least::default(),
        ..wire
    };
    for wire in [wire, wire_of_few] {
        for line_q16 in [0, 1, LINE_Q16, u32::MAX] {
            assert!(sooner_q16(&wire, line_q16) <= line_q16);
        }
    }
    // SAFETY: as above.
    assert_eq!(unsafe { raw::onr_wire_has_enough(&wire_of_few) }, 0);
}

#[test]
fn the_least_delay_is_known_again_when_a_byte_has_another_time() {
    let least_ns = |wire: &raw::onr_wire, sooner_q16| {
        // SAFETY: the reference is valid for the call.
        unsafe { raw::onr_wire_least_ns(wire, LINE_Q16, sooner_q16) }
    };
    assert_eq!(least_ns(&seen(0, |_| 0), LINE_Q16), PATH_NS);
    let at_the_line_rate = least_ns(&seen(LINE_Q16, |_| 0), 0);
    assert!((PATH_NS..PATH_NS + 1_200).contains(&at_the_line_rate));
    assert_eq!(least_ns(&raw::onr_wire::default(), 0), i64::MAX);
}

/// The delay of a sample at the end of a segment of 16,000 bytes that left at 0 and arrived whole after 5 us.
#[test]
fn a_flow_whose_segments_arrive_whole_has_no_delay_below_zero() {
    let config = raw::onr_cfg {
        line_ns_per_byte_q16: LINE_Q16,
        max_owd_ns: 1_000_000,
        ..Default::default()
    };
    let record = raw::onr_record {
        len: 16_000,
        ..Default::default()
    };
    for (sooner_q16, owd_ns) in [
        (0, PATH_NS - 12_799),
        (LINE_Q16, PATH_NS),
        (u32::MAX, PATH_NS),
    ] {
        let mut flow = raw::onr_flow {
            sooner_q16,
            ..Default::default()
        };
        // SAFETY: the references are valid for the call.
        unsafe { raw::onr_orack_arrived(&config, &mut flow, &record, 15_999, PATH_NS, PATH_NS) };
        assert_eq!(flow.sample_owd_ns, owd_ns);
    }
}
