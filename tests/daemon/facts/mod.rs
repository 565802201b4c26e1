// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The registry: every fact by file, with the seconds that it takes (roughly, as `ONRAMP_VM_LOG=1` shows them while as
//! many machines run as there are processors): host.rs shares the work out by them.
//! machine: the time of all facts is virtual (main.rs).

/// Something that must hold; `run` panics if it does not. Those of `studies`, `soak`, `unloaded`, `upgrades` and
/// `grid` take long: they run when they are asked for (`--ignored studies`).
pub struct Fact {
    pub name: &'static str,
    pub cost_s: u32,
    /// It varies a fact that `make test` runs. It runs with `make facts`, and when a filter names it.
    pub is_variant: bool,
    pub run: fn(),
}

/// What distinguishes machines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine {
    pub processors: u8,
    /// Network cards.
    pub cards: usize,
    /// A PTP hardware clock.
    pub has_ptp_clock: bool,
}

impl Machine {
    pub const USUAL: Machine = Machine {
        processors: 1,
        cards: 0,
        has_ptp_clock: false,
    };
}

impl Fact {
    /// Does it run only when it is asked for?
    pub fn is_left_out(&self, has_filter: bool) -> bool {
        self.is_study() || self.is_variant && !has_filter
    }

    pub fn is_study(&self) -> bool {
        ["studies::", "soak::", "unloaded::", "upgrades::", "grid::"]
            .iter()
            .any(|file| self.name.starts_with(file))
    }

    /// What its machine must have.
    pub fn machine(&self) -> Machine {
        let file = self.name.split("::").next();
        Machine {
            processors: if matches!(file, Some("queues" | "links")) {
                4
            } else {
                1
            },
            cards: if file == Some("nics") { 2 } else { 0 },
            has_ptp_clock: file == Some("phc"),
        }
    }
}

macro_rules! is_variant {
    () => {
        false
    };
    (variant) => {
        true
    };
}

macro_rules! facts {
    ($($file:ident { $($name:ident: $cost_s:literal $($variant:ident)?,)+ })+) => {
        $(mod $file;)+
        pub const FACTS: &[Fact] = &[$($(Fact {
            name: concat!(stringify!($file), "::", stringify!($name)),
            cost_s: $cost_s,
            is_variant: is_variant!($($variant)?),
            run: $file::$name,
        },)+)+];
    };
}

facts! {
    holding {
        law_off_measures_and_holds_nothing: 14 variant,
        the_strawman_brings_the_delay_down: 14 variant,
        the_final_law_brings_the_delay_down: 27,
        the_gate_brings_the_delay_down: 30,
        a_threshold_below_the_path_costs_no_throughput: 58 variant,
        ipv6_is_held_as_ipv4_is: 14 variant,
        gro_at_the_receiver_keeps_the_samples: 14 variant,
        segments_of_64_kb_are_held: 14 variant,
        frames_of_9000_bytes_are_held: 14 variant,
        paced_flows_do_not_overflow_a_port_together: 60 variant,
        a_flow_that_waits_for_acknowledgements_is_spaced: 11,
    }
    lone {
        a_lone_flow_pays_at_most_two_percent: 110 variant,
    }
    level {
        requests_beside_long_flows_take_no_longer_than_under_gate: 140,
        requests_beside_long_flows_take_no_longer_than_under_gate_and_final: 280 variant,
        a_flow_beside_one_that_nobody_holds_has_its_share: 40,
        hosts_that_do_not_count_are_not_held_and_understand_those_that_do: 20,
        a_receiver_that_lies_holds_no_flow_beyond_the_cap: 10,
    }
    queues {
        each_has_a_qdisc_that_holds: 66,
        what_they_had_comes_back: 10 variant,
        a_qdisc_that_another_program_gives_to_one_stays: 13,
        a_connection_that_changes_its_queue_keeps_its_state: 20 variant,
        a_kick_that_runs_another_queue_is_found: 40 variant,
        late_timers_do_not_slow_a_paced_flow: 12 variant,
        one_rate_for_all_needs_one_qdisc: 5,
        no_kick_leaves_while_processors_contend: 30 variant,
    }
    nics {
        the_wait_in_the_own_nic_is_no_delay_of_the_network: 17,
        a_nic_that_others_fill_does_not_hold_a_flow: 20 variant,
        the_line_rate_is_the_one_that_the_driver_reports_now: 8,
    }
    edt {
        it_holds_an_incast_and_shortens_the_queue: 50,
        every_law_holds_with_it: 30 variant,
        its_holds_end_with_the_lease: 8,
        it_restores_what_it_found: 10 variant,
        each_transmit_queue_gets_fq: 6 variant,
        its_successor_restores_what_a_killed_one_found: 8 variant,
        a_full_table_passes_traffic_and_counts_it: 5 variant,
        what_it_cannot_do_is_refused: 5,
        the_path_is_edge_where_the_kernel_has_it: 7,
    }
    oracks {
        over_ipv4_they_have_78_bytes_and_a_right_checksum: 8,
        over_ipv6_they_have_98_bytes_and_a_right_checksum: 6,
        data_with_complete_checksums_make_no_difference: 4 variant,
        from_merged_segments_they_are_the_same: 4 variant,
        whoever_completes_the_checksum_it_becomes_right: 19 variant,
        a_sample_older_than_the_longest_pause_is_not_told: 6,
        how_often_they_come_can_be_set: 11 variant,
    }
    faults {
        one_lost_orack_in_a_hundred_changes_little: 7 variant,
        half_of_the_oracks_are_enough_to_hold: 7 variant,
        without_any_orack_nothing_is_held: 7 variant,
        a_peer_that_sends_no_oracks_is_named: 16,
        doubled_oracks_are_ignored_and_counted: 7 variant,
        oracks_that_others_overtook_are_ignored_and_counted: 7 variant,
        oracks_that_are_seconds_late_are_stale: 13 variant,
        replayed_oracks_change_nothing: 15,
        oracks_that_are_wrong_are_refused_and_counted: 18,
        oracks_are_good_for_one_host_and_one_flow: 16,
        absurd_times_are_ignored_and_counted: 14 variant,
        an_authentic_lie_costs_the_cap_a_segment_at_most: 14 variant,
        forged_oracks_change_nothing: 18,
        hosts_that_share_a_key_believe_each_other: 7 variant,
        hosts_with_different_keys_do_not_believe_each_other: 11,
    }
    others {
        what_is_no_segment_with_data_does_not_wait: 22 variant,
    }
    clocks {
        steps_at_the_sender_are_ignored: 8 variant,
        steps_at_the_receiver_are_ignored: 8 variant,
        small_steps_cost_the_cap_at_most: 8 variant,
        drift_is_applied: 11,
        without_a_lease_nothing_is_held_until_it_is_renewed: 17,
        a_pause_ends_with_the_lease: 10,
        a_receiver_without_a_lease_sends_no_oracks: 15,
        a_system_clock_is_used_while_it_is_believed: 36 variant,
        an_impossible_delay_proves_the_bound_of_a_system_clock_wrong: 26,
        an_automatic_threshold_outlives_a_glitch_of_the_clock: 19 variant,
        an_automatic_threshold_follows_a_route_that_grows: 20 variant,
    }
    phc {
        its_time_is_used_until_it_steps_fails_or_vanishes: 35 variant,
        a_clock_with_a_counter_of_its_own_is_read_as_well: 8 variant,
        an_impossible_delay_proves_its_bound_wrong: 8 variant,
        a_device_without_one_is_refused_by_name: 3 variant,
    }
    chrony {
        the_clock_is_believed_until_its_chronyd_has_been_dead_for_long: 50 variant,
    }
    huygens {
        wrong_clocks_agree_under_load: 70,
        over_ipv6_they_agree_as_well: 40 variant,
        two_hosts_agree: 30 variant,
        half_of_the_probes_are_enough: 40 variant,
        on_ramp_holds_by_fleet_time: 40 variant,
        automatic_thresholds_come_from_the_way_and_without_one_nothing_is_held: 40 variant,
        a_dead_coordinator_ends_the_lease_and_a_new_one_goes_on: 60 variant,
        a_dead_peer_and_a_way_that_loses_everything_harm_nobody_else: 50 variant,
        forged_replayed_and_cut_messages_are_counted_and_ignored: 40 variant,
        the_wall_clock_may_leap: 40 variant,
        the_system_clock_may_be_slewed: 40 variant,
        a_system_clock_that_another_program_sets_is_left_to_it: 40 variant,
        a_way_that_is_longer_than_the_way_back_costs_half_of_that_at_most: 40 variant,
    }
    sigma {
        nothing_is_held_for_a_threshold_below_it: 60,
        a_starved_sender_of_an_incast_is_held_as_guard_and_cap_allow: 70 variant,
        a_starved_receiver_of_an_incast_holds_its_peers_as_guard_and_cap_allow: 90 variant,
    }
    fleets {
        one_outlives_its_leader_and_fails_open_without_etcd: 95,
    }
    life {
        sigterm_puts_the_default_back: 7,
        sigint_puts_the_default_back: 5 variant,
        a_configured_qdisc_comes_back_with_its_options: 11,
        a_qdisc_that_could_not_come_back_is_left_alone: 11,
        what_another_program_makes_of_the_root_qdisc_stays: 9,
        a_removed_qdisc_is_noticed_and_the_former_one_comes_back: 6,
        stopping_under_load_loses_no_transfer: 5 variant,
        killed_under_load_it_leaves_traffic_flowing_and_its_successor_takes_over: 5 variant,
        down_and_up_under_load_loses_no_transfer: 16 variant,
        it_keeps_the_capabilities_that_it_needs_and_no_others: 5,
        slow_clients_and_hostile_ones_hold_up_no_lease: 8,
        sighup_reads_the_keys_again: 14,
        a_daemon_without_peers_names_the_option_that_mends_it: 10,
        status_tells_of_a_daemon_and_of_none: 7,
    }
    programs {
        each_is_verified_as_quickly_as_recorded: 13,
    }
    successors {
        after_a_kill_under_load_it_goes_on_without_loss: 34,
        after_a_handover_under_load_it_goes_on_without_loss: 10 variant,
        after_a_kill_it_goes_on_on_each_of_several_devices: 29 variant,
        after_a_kill_it_goes_on_with_edt: 10 variant,
        after_a_kill_it_goes_on_observing: 10 variant,
        it_has_its_own_configuration_and_replaces_what_does_not_fit: 22 variant,
        detach_leaves_no_trace_of_a_killed_one: 9,
        detach_leaves_no_trace_of_a_killed_one_with_edt: 5 variant,
        pins_of_a_device_that_has_gone_are_removed: 9,
        a_replacement_under_load_loses_no_transfer: 10 variant,
        one_with_other_programs_replaces_them_and_their_pins: 17 variant,
        without_write_access_to_the_bpf_file_system_the_next_one_begins_anew: 6 variant,
        the_shipped_file_observes_after_one_command_and_enforces_after_another: 29,
    }
    replacements {
        an_upgrade_under_load_loses_no_segment: 20 variant,
        an_upgrade_delays_no_request_beyond_the_cap: 20 variant,
        a_start_and_a_stop_under_load_lose_no_segment: 20,
    }
    configuration {
        an_excluded_port_is_not_held_and_a_class_has_its_threshold: 20 variant,
        with_edt_classes_are_the_same: 20 variant,
        a_class_of_cgroups_has_what_their_sockets_send: 41 variant,
        with_edt_classes_of_cgroups_are_the_same: 15 variant,
        a_reload_changes_what_can_change_and_keeps_flows: 38,
        without_options_the_usual_file_and_the_default_route_are_taken: 7,
    }
    refusals {
        a_second_daemon_on_a_device: 10,
        loopback_and_devices_that_do_not_exist: 2,
        a_device_of_a_type_that_it_does_not_know: 3,
        a_team_in_place_of_its_ports: 9 variant,
        users_without_privilege: 2,
        values_out_of_bounds: 8,
        key_files_that_are_none: 5,
    }
    sight {
        metrics_are_those_of_the_data_path: 21,
        top_doctor_and_connectivity_agree_with_the_daemon: 23,
        doctor_names_what_a_killed_daemon_left: 5,
        an_observer_writes_a_trace_of_flows: 9,
        a_traced_flow_is_as_the_daemon_sees_it: 24 variant,
        a_trace_on_a_full_or_read_only_file_system_is_lost_and_the_daemon_stays: 9,
    }
    hosts {
        a_program_in_front_that_ends_the_chain_costs_oracks_not_traffic: 12,
        a_reset_does_not_overtake_held_data: 8,
        with_edt_a_reset_does_not_overtake_held_data: 5 variant,
        a_router_leaves_oracks_and_flows_to_the_ends: 14,
        a_host_speaks_for_the_pods_that_it_serves: 12,
        flows_to_strangers_take_no_room: 6,
        flows_leave_the_table_with_their_connections: 7,
        an_observer_measures_and_changes_nothing: 16,
        a_pace_that_an_application_has_set_is_kept: 6,
        a_paced_connection_keeps_its_pace_when_fq_goes: 6,
        slow_start_is_as_with_the_fq_that_edge_replaces: 10,
        packets_leave_at_the_time_that_they_name: 6,
        a_host_without_the_agent_is_sent_no_more_oracks: 11,
        a_segment_that_tcp_would_drop_is_not_acknowledged: 10,
    }
    own {
        a_kick_ends_in_the_qdisc_whatever_is_done_to_it: 8,
        a_clone_becomes_an_orack_whatever_is_done_to_it: 6,
        a_refusal_of_what_is_no_orack_mutes_nobody: 8,
        the_port_of_oracks_is_the_daemons: 5,
    }
    frames {
        a_tag_in_metadata: 9 variant,
        a_tag_in_the_frame: 17 variant,
        a_vlan_device: 9 variant,
        a_vxlan_device: 9 variant,
        a_vxlan_device_with_ipv6: 9 variant,
        a_geneve_device: 9 variant,
        an_ipip_device: 9 variant,
        a_tunnel_beside_its_ethernet_device: 23 variant,
        an_ipv6_in_ipv4_device: 9 variant,
        a_tunnel_passes_unheld: 11 variant,
        a_pod_behind_veth: 28,
        what_is_forwarded_waits_no_longer_than_before: 20,
        a_segment_that_arrives_whole_has_no_delay_below_zero: 20,
        a_pod_behind_netkit: 10 variant,
        an_agent_in_a_pod_behind_netkit: 10 variant,
    }
    paths {
        behind_a_router_that_masquerades_flows_pass_unheld: 80 variant,
        a_firewall_between_hosts_decides_about_oracks: 40 variant,
        on_a_wireguard_device_flows_are_held: 30,
        below_a_wireguard_device_flows_pass_unheld: 30 variant,
        in_ipsec_transport_flows_pass_unheld: 20 variant,
        in_an_ipsec_tunnel_flows_pass_unheld_and_nothing_tells_of_them_in_clear: 25 variant,
        on_an_xfrm_device_flows_pass_unheld: 30 variant,
        a_policer_that_drops_without_delay_sees_the_same_traffic: 30 variant,
        a_path_that_reorders_sees_the_same_traffic: 30 variant,
        a_path_whose_mtu_shrinks_sees_the_same_traffic: 30 variant,
    }
    beside {
        behind_generic_xdp_flows_are_held: 25 variant,
        behind_native_xdp_flows_are_held: 25 variant,
        what_xdp_redirects_is_held_where_an_agent_sees_it: 40 variant,
        with_firewalls_on_the_hosts_flows_are_held: 25 variant,
        with_a_filter_of_nft_at_egress_flows_are_held: 25 variant,
        a_filter_of_nft_at_egress_sees_neither_clones_nor_oracks: 20 variant,
        programs_at_the_egress_of_cgroups_do_as_before: 60 variant,
        datagrams_of_quic_lose_less_beside_held_flows: 20 variant,
        an_emulator_on_the_device_is_observed_and_not_replaced: 20 variant,
    }
    sockets {
        subflows_of_mptcp_are_held_each: 30 variant,
        a_request_in_the_syn_begins_a_new_flow: 15,
        flows_of_ktls_are_held: 30 variant,
        sequence_numbers_may_wrap: 60 variant,
        a_flow_beyond_4_gb_is_measured_to_its_end: 90 variant,
        ipv6_with_extension_headers_passes_unheld: 40 variant,
        ipv4_with_options_is_held: 25 variant,
    }
    devices {
        one_daemon_holds_on_each: 21,
        with_edt_one_daemon_holds_on_each: 10 variant,
        each_of_several_queues_of_both_has_a_qdisc_that_holds: 12 variant,
        an_orack_may_come_back_on_the_other: 10 variant,
        an_orack_may_leave_by_the_other: 10 variant,
        both_get_back_what_they_had: 15 variant,
        one_that_cannot_be_held_is_named_and_none_is_taken: 9,
        one_that_is_removed_and_comes_back_is_held_again: 20 variant,
        a_bond_with_a_backup_is_held_on_the_slave_that_sends: 32 variant,
        a_bond_that_balances_is_held_on_both_slaves: 10 variant,
        slaves_are_followed: 10 variant,
    }
    links {
        new_transmit_queues_get_a_qdisc_that_holds: 12,
        a_device_that_gets_its_second_queue_gets_a_qdisc_for_each: 12 variant,
        fewer_transmit_queues_hold_and_those_that_come_back_too: 12 variant,
        with_edt_new_transmit_queues_get_fq: 10 variant,
        a_changed_mtu_changes_the_quantum_of_each_qdisc: 10,
        a_renamed_device_is_held_on_under_its_new_name: 12,
        a_single_device_that_is_removed_is_waited_for: 15,
        a_daemon_that_waits_for_its_device_stops_cleanly: 6,
        one_that_goes_in_the_middle_of_an_attach_is_named: 6,
        two_daemons_for_one_device_are_refused_by_name: 12,
    }
    limits {
        a_full_flow_table_passes_traffic_and_counts_it: 12,
        idle_flows_make_room_for_new_ones: 5,
        a_full_queue_drops_and_counts_and_tcp_recovers: 13,
        a_flood_fills_its_own_queue_only: 5,
        a_flood_of_many_sockets_delays_no_connection: 10,
        a_flood_to_many_ports_delays_no_connection: 10,
        more_peers_than_fit_and_silent_peers_harm_nobody: 12,
    }
    scale {
        thousands_of_held_flows_cost_no_scan: 38 variant,
        flows_of_one_host_get_equal_shares: 10,
        a_daemon_with_16384_flows_is_small: 15 variant,
    }
    congestion {
        ours_run_in_the_kernel: 113,
        each_of_ours_carries_data: 20,
        rapid_runs_in_the_kernel: 100 variant,
        gaps_of_rapid_are_kept: 25 variant,
        no_hardship_stops_a_flow: 30 variant,
    }
    soak {
        random_faults_for_hours: 2400,
    }
    unloaded {
        a_host_before_with_and_after_daemons: 400,
        throughput_by_part_of_on_ramp: 150,
        lone_transfers_of_cubic_with_fq: 600,
        lone_transfers_of_reno_with_fq: 400,
        lone_transfers_of_bbr_with_fq: 400,
        lone_transfers_of_dctcp_with_fq: 400,
        lone_transfers_of_cubic_with_fq_codel: 600,
        lone_transfers_of_bbr_with_fq_codel: 400,
    }
    upgrades {
        a_fleet_is_upgraded_host_by_host: 500,
    }
    grid {
        no_threshold_and_no_clock_costs_a_flow_its_throughput: 600,
    }
    studies {
        clocks_beside_chrony_and_ptp4l: 150,
        ten_million_forged_oracks_change_nothing: 600,
        edt_beside_edge: 300,
        programs_by_kernel: 8,
        replacements_beside_tc: 600,
    }
}
