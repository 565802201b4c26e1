use super::*;

/// What is wrong with a host or a device.
type Change<'a, T> = &'a dyn Fn(&mut T);

fn good_host() -> HostFacts {
    HostFacts {
        release: "6.16.3-cloud-amd64".to_owned(),
        missing_capabilities: vec![],
        has_btf: true,
        has_bpf_qdiscs: true,
        has_fq: true,
        bpffs: BpfFs::Writable,
        compiles_bpf: Some(true),
        has_bandwidth_manager: false,
        clock_port: ClockPort::Free,
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

#[test]
fn each_lack_of_the_host_is_one_line_with_what_mends_it() {
    let cases: &[(Change<HostFacts>, &str, State, &str)] = &[
        (
            &|host| host.release = "5.4.0-100-generic".to_owned(),
            "kernel",
            State::Missing,
            "5.10",
        ),
        (
            &|host| host.has_btf = false,
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
            &|host| host.clock_port = ClockPort::Taken,
            "UDP 5198",
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
    for (change, feature, state, fix) in cases {
        let mut host = good_host();
        change(&mut host);
        let findings = judge_host(&host).into_iter();
        let hooks = |finding: &Finding| finding.feature != "hooks" || *feature == "hooks";
        let trouble = only_trouble(findings.filter(hooks).collect());
        assert_eq!((trouble.feature, trouble.state), (*feature, *state));
        let told = trouble.fix.unwrap_or_default();
        assert!(told.contains(fix), "{feature}: {told}");
    }
}

#[test]
fn each_lack_of_a_device_is_one_line() {
    let cases: &[(Change<DeviceFacts>, &str, &str)] = &[
        (&|dev| dev.is_up = false, "link", "ip link set eth0 up"),
        (&|dev| dev.addresses.clear(), "address", "--peers"),
        (
            &|dev| dev.addresses = vec!["10.0.0.1/32".parse().unwrap()],
            "address",
            "--peers",
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
        let told = trouble.fix.unwrap_or_default();
        assert!(told.contains(fix), "{feature}: {told}");
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
        has_fq: false,
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
        has_btf: false,
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
