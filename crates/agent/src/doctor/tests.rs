// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use crate::config::{DoctorOptions, Given};

/// What is wrong with a host or a device.
type Change<'a, T> = &'a dyn Fn(&mut T);

fn good_host() -> HostFacts {
    HostFacts {
        release: "6.16.3-cloud-amd64".to_owned(),
        missing_capabilities: vec![],
        is_container: false,
        plan: Plan::default(),
        types: Part::Here,
        has_bpf_qdiscs: true,
        fq: Part::Here,
        bpffs: BpfFs::Writable,
        compiles_bpf: Some(true),
        has_bandwidth_manager: false,
        clock_port: PortUser::Nobody,
        orack_port: PortUser::Nobody,
        ptp_clocks: vec![],
    }
}

fn good_device() -> DeviceFacts {
    DeviceFacts {
        name: "eth0".to_owned(),
        is_up: true,
        addresses: vec!["10.0.0.1/24".parse().unwrap()],
        qdisc: Qdisc::Replaceable("fq_codel".to_owned()),
        tcx: Some(vec![]),
        has_own_programs: false,
        line_rate: Some("10 Gbit/s".parse().unwrap()),
        counts_bytes: true,
        queues: 4,
        gso_max_bytes: Some(65_536),
        daemon: None,
    }
}

/// The only finding that is not good.
fn only_trouble(findings: Vec<Finding>) -> Finding {
    let troubles: Vec<Finding> = findings
        .into_iter()
        .filter(|finding| finding.state != State::Ok)
        .collect();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    troubles.into_iter().next().unwrap()
}

#[test]
fn a_good_host_has_the_path_edge_and_no_trouble() {
    let (path, findings) = judge_device(&good_host(), &good_device());
    assert_eq!(path, Gets::Edge);
    let all = judge_host(&good_host()).into_iter().chain(findings);
    all.for_each(|finding| assert_eq!(finding.state, State::Ok, "{finding:?}"));
}

/// What lacks, the feature that misses it, its state then, and what mends it.
const LACKS: &[(Change<HostFacts>, &str, State, &str)] = &[
    (
        &|host| host.release = "5.4.0-100-generic".to_owned(),
        "kernel",
        State::Missing,
        "5.10",
    ),
    (
        &|host| host.plan = mistaken(2),
        "configuration",
        State::Missing,
        "onramp agent validate /etc/onramp/onramp.toml names them",
    ),
    (
        &|host| host.types = Part::Unknown,
        "BTF",
        State::Missing,
        "CONFIG_DEBUG_INFO_BTF",
    ),
    (
        &|host| host.missing_capabilities = vec!["BPF"],
        "privileges",
        State::Missing,
        "sudo",
    ),
    (
        &|host| host.compiles_bpf = Some(false),
        "BPF compiler",
        State::Limited,
        "sysctl -w",
    ),
    (
        &|host| host.bpffs = BpfFs::None,
        "bpffs",
        State::Limited,
        "mount -t bpf",
    ),
    (
        &|host| host.bpffs = BpfFs::ReadOnly,
        "bpffs",
        State::Limited,
        "remount,rw",
    ),
    (
        &|host| host.clock_port = PortUser::Other,
        "UDP 5198",
        State::Limited,
        "ss -ulpn",
    ),
    (
        &|host| host.orack_port = PortUser::Other,
        "UDP 5199",
        State::Limited,
        "ss -ulpn",
    ),
    (
        &|host| host.has_bandwidth_manager = true,
        "Cilium",
        State::Limited,
        "--path edt",
    ),
];

#[test]
fn each_lack_of_the_host_is_one_line_with_what_mends_it() {
    for (change, feature, state, fix) in LACKS {
        let mut host = good_host();
        change(&mut host);
        let findings = judge_host(&host).into_iter();
        let hooks = |finding: &Finding| finding.feature != "hooks" || *feature == "hooks";
        let trouble = only_trouble(findings.filter(hooks).collect());
        assert_eq!((trouble.feature, trouble.state), (*feature, *state));
        let advice = trouble.fix.unwrap_or_default();
        assert!(advice.contains(fix), "{feature}: {advice}");
    }
}

/// A configuration with this number of mistakes.
fn mistaken(mistakes: usize) -> Plan {
    Plan {
        file: Some("/etc/onramp/onramp.toml".into()),
        mistakes,
        ..Plan::default()
    }
}

#[test]
fn each_lack_of_a_device_is_one_line() {
    let cases: &[(Change<DeviceFacts>, &str, &str)] = &[
        (&|dev| dev.is_up = false, "link", "ip link set eth0 up"),
        (
            &|dev| dev.qdisc = Qdisc::Own,
            "qdisc",
            "onramp detach --dev eth0",
        ),
        (
            &|dev| dev.has_own_programs = true,
            "tcx programs",
            "onramp detach --dev eth0",
        ),
        (
            &|dev| dev.tcx = Some(vec!["cil_from_netdev".to_owned()]),
            "tcx programs",
            "bpftool net show dev eth0",
        ),
        (&|dev| dev.line_rate = None, "line rate", "--line-rate"),
        (&|dev| dev.counts_bytes = false, "byte counts", ""),
    ];
    for (change, feature, fix) in cases {
        let mut device = good_device();
        change(&mut device);
        let (path, findings) = judge_device(&good_host(), &device);
        assert_eq!(path, Gets::Edge);
        let trouble = only_trouble(findings);
        assert_eq!((trouble.feature, trouble.state), (*feature, State::Limited));
        let advice = trouble.fix.unwrap_or_default();
        assert!(advice.contains(fix), "{feature}: {advice}");
    }
}

#[test]
fn the_path_follows_kernel_qdisc_and_cilium() {
    let path = |host: &HostFacts, device: &DeviceFacts| judge_device(host, device).0;
    let older = HostFacts {
        has_bpf_qdiscs: false,
        release: "6.12.1".to_owned(),
        ..good_host()
    };
    assert_eq!(path(&older, &good_device()), Gets::Edt);
    let without_fq = HostFacts {
        fq: Part::Unknown,
        ..older.clone()
    };
    assert_eq!(path(&without_fq, &good_device()), Gets::Observe);
    let managed = HostFacts {
        has_bandwidth_manager: true,
        ..good_host()
    };
    assert_eq!(path(&managed, &good_device()), Gets::Edt);
    let foreign = DeviceFacts {
        qdisc: Qdisc::Foreign("it has a htb qdisc".to_owned()),
        ..good_device()
    };
    assert_eq!(path(&good_host(), &foreign), Gets::Observe);
    assert!(!Gets::Observe.holds());
    let no_types = HostFacts {
        types: Part::Unknown,
        ..good_host()
    };
    assert_eq!(path(&no_types, &good_device()), Gets::Nothing);
}

#[test]
fn releases_of_distributions_have_a_version() {
    assert_eq!(Version::of("6.1.0-50-cloud-amd64"), Some(Version(6, 1)));
    assert_eq!(Version::of("5.10.0"), Some(Version(5, 10)));
    assert!(Version(5, 10) > Version(5, 4));
    assert_eq!(Version::of("next"), None);
}

/// What a running daemon has on a device is no trouble.
#[test]
fn what_a_daemon_holds_is_its_own() {
    let device = DeviceFacts {
        qdisc: Qdisc::Own,
        has_own_programs: true,
        daemon: Some(7),
        ..good_device()
    };
    let (_, findings) = judge_device(&good_host(), &device);
    findings
        .iter()
        .for_each(|finding| assert_eq!(finding.state, State::Ok, "{finding:?}"));
}

/// Nothing is held where no host is a peer.
#[test]
fn a_device_without_a_subnet_needs_named_peers() {
    let lonely = ["10.0.0.1/32", "fe80::1/64"].map(|address| address.parse().unwrap());
    for addresses in [vec![], lonely.to_vec()] {
        let device = DeviceFacts {
            addresses,
            ..good_device()
        };
        let trouble = only_trouble(judge_device(&good_host(), &device).1);
        assert_eq!(
            (trouble.feature, trouble.state),
            ("address", State::Missing)
        );
        assert!(trouble.fix.unwrap().starts_with("--peers 10.0.0.0/8"));
        let mut named = good_host();
        named.plan.has_peers = true;
        let (_, findings) = judge_device(&named, &device);
        assert!(findings.iter().all(|finding| finding.state == State::Ok));
    }
}

#[test]
fn a_configured_line_rate_needs_no_driver() {
    let mut host = good_host();
    host.plan.line_rate = Some("25 Gbit/s".parse().unwrap());
    let device = DeviceFacts {
        line_rate: None,
        ..good_device()
    };
    let (_, findings) = judge_device(&host, &device);
    let rate = findings.iter().find(|f| f.feature == "line rate").unwrap();
    assert_eq!(
        (rate.state, rate.found.as_str()),
        (State::Ok, "25 Gbit/s, as configured")
    );
}

/// The line `path` of an older kernel whose fq is this, in a container or not.
fn path_with(fq: Part, is_container: bool) -> (String, String) {
    let host = HostFacts {
        has_bpf_qdiscs: false,
        is_container,
        fq,
        ..good_host()
    };
    let (gets, findings) = judge_device(&host, &good_device());
    assert_eq!(gets, Gets::Observe);
    let path = only_trouble(findings);
    assert_eq!((path.feature, path.state), ("path", State::Missing));
    (path.found, path.fix.unwrap())
}

#[test]
fn a_module_is_loaded_only_where_the_kernel_has_it() {
    let (found, fix) = path_with(Part::NotBuilt("/proc/config.gz".to_owned()), false);
    assert!(
        found.ends_with("was built without sch_fq (/proc/config.gz)"),
        "{found}"
    );
    assert!(
        !fix.contains("modprobe") && fix.contains("Debian's cloud kernel"),
        "{fix}"
    );
    let (_, fix) = path_with(Part::Elsewhere, false);
    assert!(fix.starts_with("modprobe sch_fq; if"), "{fix}");
    let (_, fix) = path_with(Part::Unknown, true);
    assert!(fix.starts_with("on the host: modprobe sch_fq"), "{fix}");
}

#[test]
fn types_that_a_container_hides_are_mounted() {
    let of = |types: Part, is_container| {
        let host = HostFacts {
            types,
            is_container,
            ..good_host()
        };
        only_trouble(judge_host(&host))
    };
    let hidden = of(Part::Elsewhere, true);
    assert_eq!((hidden.feature, hidden.state), ("BTF", State::Missing));
    assert!(hidden.fix.unwrap().starts_with("mount the host's /sys"));
    let not_built = of(Part::NotBuilt("/boot/config-6.1".to_owned()), true);
    assert!(not_built
        .found
        .ends_with("CONFIG_DEBUG_INFO_BTF (/boot/config-6.1)"));
    assert!(not_built.fix.unwrap().starts_with("use a kernel with"));
}

/// As `onramp doctor` with this file and these options plans it.
fn plan_of(file: &str, options: &[(&'static str, &str)]) -> anyhow::Result<Plan> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onramp.toml");
    std::fs::write(&path, file).unwrap();
    let text = |(key, value): &(&'static str, &str)| (*key, vec![(*value).to_owned()]);
    Plan::of(&DoctorOptions(Given {
        config: Some(path),
        options: options.iter().map(text).collect(),
    }))
}

#[test]
fn devices_and_peers_are_those_of_the_daemon() {
    let plan = plan_of("devices = [\"eth1\"]\n", &[]).unwrap();
    assert_eq!(plan.devices().unwrap(), ["eth1"]);
    assert!(!plan.has_peers);
    let named = plan_of("[peers]\nprefixes = [\"10.0.0.0/8\"]\n", &[]).unwrap();
    let fleet = plan_of("[clock]\nsource = \"huygens\"\n", &[]).unwrap();
    let option = plan_of("", &[("peers.prefixes", "10.0.0.0/8")]).unwrap();
    assert!([named, fleet, option].iter().all(|plan| plan.has_peers));
}

#[test]
fn mistakes_of_the_file_are_counted_and_those_of_options_refused() {
    let plan = plan_of("devises = 1\nobserve = 2\n", &[("devices", "eth1")]).unwrap();
    assert_eq!((plan.mistakes, plan.devices.len()), (2, 1));
    let error = plan_of("", &[("peers.prefixes", "10.0.0.0/40")]).unwrap_err();
    assert!(
        error.to_string().contains("--peers is 10.0.0.0/40"),
        "{error}"
    );
}
