// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Every registered part does what all of its kind do. No test names one.

use onramp_cc::law::ControlLaw;
use onramp_cc::{path, switch, Cc};
use onramp_sim::conformance;

#[test]
fn congestion_controls_of_kernel_hosts() {
    let all = Cc::all().filter(|cc| !cc.is_nic());
    all.for_each(conformance::congestion_control);
}

#[test]
fn congestion_controls_of_nics() {
    let all = Cc::all().filter(|cc| cc.is_nic());
    all.for_each(conformance::congestion_control);
}

#[test]
fn rules_of_switches() {
    switch::entries().for_each(conformance::switch_rule);
}

#[test]
fn control_laws() {
    ControlLaw::all().for_each(conformance::control_law);
}

#[test]
fn choices_of_paths() {
    path::entries().for_each(conformance::path_choice);
}

#[test]
fn shapes_of_networks() {
    onramp_scenario::shapes().for_each(conformance::shape);
}
