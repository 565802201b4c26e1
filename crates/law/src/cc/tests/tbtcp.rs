// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::US;
use crate::cc::*;
use proptest::prelude::*;

#[test]
fn a_mark_takes_k_packets_but_at_most_half_and_leaves_two() {
    let cut = |k, window, marks| {
        let cfg = TbtcpCfg {
            eta_per_mille: 100,
            k,
        };
        tbtcp_cut(&cfg, window, marks)
    };
    assert_eq!((cut(1, 100, 1), cut(1, 100, 7)), (99, 93));
    assert_eq!((cut(4, 100, 2), cut(4, 6, 1), cut(4, 3, 1)), (92, 3, 2));
    assert_eq!((cut(1, 2, 9), cut(1, 3, u32::MAX), cut(1, 0, 1)), (2, 2, 0));
}

#[test]
fn a_queue_of_one_bdp_marks_every_second_packet_at_any_rate() {
    let (mut owed, queue, base) = (0, 20 * US, 20 * US);
    let marks: u32 = (0..10)
        .map(|_| tbtcp_marks(&mut owed, 1, queue, base))
        .sum();
    assert_eq!(marks, 5);
    assert_eq!(tbtcp_marks(&mut owed, 1000, queue, base), 500);
    assert_eq!(tbtcp_marks(&mut owed, u32::MAX, 0, base), 0);
    assert_eq!(tbtcp_marks(&mut owed, 9, 0, 0), 0);
    // A queue of a seventh of the BDP is an eighth of the window.
    assert_eq!(tbtcp_marks(&mut owed, 8000, base / 7, base), 999);
}

#[test]
fn a_window_of_one_bdp_and_the_queue_loses_the_queue_in_a_round_trip() {
    // 100 packets of 1 us are on the way and 25 in the queue.
    let marks = tbtcp_marks(&mut 0, 125, 25 * US, 100 * US);
    let cfg = TbtcpCfg {
        eta_per_mille: 100,
        k: 1,
    };
    assert_eq!(tbtcp_cut(&cfg, 125, marks), 101);
}

#[test]
fn ten_round_trips_add_a_packet() {
    let slow = TbtcpCfg {
        eta_per_mille: 100,
        k: 1,
    };
    let (mut counted, mut window) = (0, 50);
    for _ in 0..499 {
        window = tbtcp_grow(&slow, &mut counted, window, 1);
    }
    assert_eq!(window, 50);
    assert_eq!(tbtcp_grow(&slow, &mut counted, window, 1), 51);
    let fast = TbtcpCfg {
        eta_per_mille: 1000,
        k: 1,
    };
    assert_eq!(tbtcp_grow(&fast, &mut 0, 10, 20), 12);
    assert_eq!(tbtcp_grow(&slow, &mut 0, 0, 0), 0);
}

proptest! {
    /// A division by zero, or an index that is none, would end the test.
    #[test]
    fn any_arguments_are_answered(cfg in any::<[u32; 2]>(), window: u32, count: u32, sum: u64, times in any::<[u32; 2]>()) {
        let cfg: TbtcpCfg = bytemuck::cast(cfg);
        tbtcp_cut(&cfg, window, count);
        tbtcp_grow(&cfg, &mut { sum }, window, count);
        tbtcp_marks(&mut { sum }, count, times[0], times[1]);
    }
}
