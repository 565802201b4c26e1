// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The classes of the configuration as rules of the data path: one for each combination of prefix, ports, device and cgroup.
//! The daemon writes the rules.
use onramp_law::abi::{onr_addr, onr_rule, ONR_NEVER_NS};
use tracing::warn;

use crate::cgroup::{self, Cgroup};
use crate::config::{CgroupPath, Class, Others, Ports};
use crate::datapath::prefix_key;
use crate::floor::{Floors, Of};
use crate::prefix::Prefix;

/// T of flows whose class has a T below the error of the clocks: as long as never, and another value for the status.
pub const BELOW_ERROR_NS: u32 = ONR_NEVER_NS - 1;

/// The rules in the order in which they are tried. `index`: of a device. `cgroup`: by its path. A rule of one that is
/// not there is left out.
pub fn rules(
    classes: &[Class],
    others: Others,
    floors: &Floors,
    index: impl Fn(&str) -> Option<i32>,
    cgroup: impl Fn(&str) -> Option<Cgroup>,
) -> Vec<onr_rule> {
    let mut all: Vec<onr_rule> = classes
        .iter()
        .flat_map(|class| of_class(class, threshold_ns(class, floors), &index, &cgroup))
        .collect();
    if others == Others::Pass {
        all.push(rule(None, Ports::ALL, 0, Cgroup::default(), ONR_NEVER_NS));
    }
    all
}

/// Logs the cgroups of classes that are not there.
pub fn tell_missing(classes: &[Class]) {
    for class in classes {
        let paths = class.cgroups.iter().map(|CgroupPath(path)| path);
        for path in paths.filter(|path| cgroup::find(path).is_none()) {
            warn!(
                "class {}: there is no cgroup {path} (version 2); nothing matches it until it is there",
                class.name
            );
        }
    }
}

fn threshold_ns(class: &Class, floors: &Floors) -> u32 {
    match class.threshold {
        _ if !class.hold => ONR_NEVER_NS,
        None => 0,
        Some(_) if floors.is_below(&Of::Class(class.name.clone())) => BELOW_ERROR_NS,
        Some(t) => t.as_ns() as u32, // its key has a bound
    }
}

fn of_class(
    class: &Class,
    threshold_ns: u32,
    index: &impl Fn(&str) -> Option<i32>,
    cgroup: &impl Fn(&str) -> Option<Cgroup>,
) -> Vec<onr_rule> {
    let devices: Vec<u32> = match class.devices.as_slice() {
        [] => vec![0],
        names => names
            .iter()
            .filter_map(|name| index(name))
            .map(|index| index as u32)
            .collect(),
    };
    let cgroups: Vec<Cgroup> = match class.cgroups.as_slice() {
        [] => vec![Cgroup::default()],
        paths => paths
            .iter()
            .filter_map(|CgroupPath(path)| cgroup(path))
            .collect(),
    };
    let ports = match class.ports.as_slice() {
        [] => vec![Ports::ALL],
        ports => ports.to_vec(),
    };
    let prefixes: Vec<Option<Prefix>> = match class.prefixes.as_slice() {
        [] => vec![None],
        prefixes => prefixes.iter().copied().map(Some).collect(),
    };
    itertools::iproduct!(prefixes, ports, devices, cgroups)
        .map(|(prefix, ports, device, cgroup)| rule(prefix, ports, device, cgroup, threshold_ns))
        .collect()
}

fn rule(
    prefix: Option<Prefix>,
    ports: Ports,
    ifindex: u32,
    cgroup: Cgroup,
    threshold_ns: u32,
) -> onr_rule {
    let (addr, mask) = prefix.map_or((onr_addr::default(), onr_addr::default()), masked);
    onr_rule {
        addr,
        mask,
        first_port: ports.first,
        last_port: ports.last,
        ifindex,
        ifindex_mask: if ifindex == 0 { 0 } else { u32::MAX },
        threshold_ns,
        cgroup_level: cgroup.level,
        reserved: 0,
        cgroup: cgroup.id,
    }
}

/// An address under its mask, and the mask.
fn masked(prefix: Prefix) -> (onr_addr, onr_addr) {
    let key = prefix_key(prefix);
    let mask = match key.bits {
        0 => 0,
        bits => u128::MAX << (128 - bits),
    };
    let addr = u128::from_be_bytes(bytemuck::cast(key.addr)) & mask;
    let of = |value: u128| bytemuck::cast(value.to_be_bytes());
    (of(addr), of(mask))
}

#[cfg(test)]
mod tests {
    use onramp_units::Span;

    use super::*;
    use crate::config::{Configuration, Daemon};
    use crate::floor::Limit;

    fn class(prefixes: &[&str], ports: &[&str], devices: &[&str]) -> Class {
        Class {
            name: "a".to_owned(),
            prefixes: prefixes.iter().map(|text| text.parse().unwrap()).collect(),
            ports: ports.iter().map(|text| text.parse().unwrap()).collect(),
            devices: devices.iter().map(|name| (*name).to_owned()).collect(),
            cgroups: vec![],
            hold: true,
            threshold: None,
        }
    }

    fn of(list: Vec<Class>, others: Others) -> Vec<onr_rule> {
        let index = |name: &str| (name == "eth1").then_some(7);
        let cgroup = |path: &str| (path == "/a/b").then_some(Cgroup { id: 9, level: 2 });
        let floors = Floors::default();
        rules(&list, others, &floors, index, cgroup)
    }

    #[test]
    fn a_cgroup_that_is_not_there_has_no_rule() {
        let of_cgroups = |paths: &[&str]| {
            let cgroups = paths
                .iter()
                .map(|path| CgroupPath((*path).to_owned()))
                .collect();
            let all = of(
                vec![Class {
                    cgroups,
                    ..class(&[], &[], &[])
                }],
                Others::Hold,
            );
            let known = |rule: &onr_rule| (rule.cgroup, rule.cgroup_level);
            all.iter().map(known).collect::<Vec<_>>()
        };
        assert_eq!(of_cgroups(&["/gone", "/a/b"]), [(9, 2)]);
        assert_eq!(of_cgroups(&["/gone"]), []);
        assert_eq!(of_cgroups(&[]), [(0, 0)]);
    }

    #[test]
    fn a_class_becomes_a_rule_for_each_combination() {
        let all = of(
            vec![class(&["10.0.0.0/8", "fd00::/8"], &["22", "80-90"], &[])],
            Others::Hold,
        );
        assert_eq!(all.len(), 4);
        assert_eq!(
            (all[1].first_port, all[1].last_port, all[1].ifindex),
            (80, 90, 0)
        );
        assert_eq!(
            of(vec![class(&[], &[], &["eth1", "gone"])], Others::Hold)[0].ifindex,
            7
        );
        assert!(of(vec![class(&[], &[], &["gone"])], Others::Hold).is_empty());
    }

    #[test]
    fn a_class_has_its_threshold_and_the_others_are_passed() {
        let held = Class {
            threshold: Some("200us".parse().unwrap()),
            ..class(&[], &["1"], &[])
        };
        let passed = Class {
            hold: false,
            ..class(&[], &["2"], &[])
        };
        let thresholds: Vec<u32> = of(vec![held, passed, class(&[], &["3"], &[])], Others::Pass)
            .iter()
            .map(|rule| rule.threshold_ns)
            .collect();
        assert_eq!(thresholds, [200_000, ONR_NEVER_NS, 0, ONR_NEVER_NS]);
    }

    #[test]
    fn a_class_below_the_error_of_the_clocks_is_passed() {
        let text = "[[class]]\nname = \"a\"\nports = [\"1\"]\nthreshold = \"8 us\"\n\
                    [[class]]\nname = \"b\"\nports = [\"2\"]\nthreshold = \"90 us\"\n";
        let file = "onramp.toml".as_ref();
        let configuration = Configuration::parse(text, file, Daemon::Agent);
        let config = configuration.unwrap_or_else(|errors| panic!("{errors}"));
        let (error, lease) = (Span::from_us(12), Span::from_s(5));
        let mut floors = Floors::default();
        floors.compare(&Limit::all(&config), error, Span::from_us(2), lease, 0);
        let all = rules(&config.classes, config.others, &floors, |_| None, |_| None);
        let thresholds: Vec<u32> = all.iter().map(|rule| rule.threshold_ns).collect();
        assert_eq!(thresholds, [BELOW_ERROR_NS, 90_000]);
    }

    #[test]
    fn a_prefix_is_an_address_under_its_mask() {
        let words = |addr: onr_addr| addr.word.map(u32::from_be);
        let (addr, mask) = masked("10.1.2.3/8".parse().unwrap());
        assert_eq!(words(addr), [0, 0, 0xffff, 0x0a00_0000]);
        assert_eq!(words(mask), [!0, !0, !0, 0xff00_0000]);
        assert_eq!(words(masked("::/0".parse().unwrap()).1), [0; 4]);
    }
}
