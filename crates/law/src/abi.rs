// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The structures as the kernel's programs have them (law/*.h, bpf/abi.h), for maps, for packets and for
//! replaying vectors: plain bytes without padding, which bytemuck's `bytes_of` and `pod_read_unaligned` move.

pub use crate::lists::COUNTERS;
pub use crate::raw::{
    bpf_spin_lock, onr_addr, onr_at_egress, onr_cfg, onr_clock, onr_clock_params, onr_ctl,
    onr_dev_cfg, onr_flow, onr_key, onr_kicks, onr_least, onr_orack, onr_peer, onr_prefix,
    onr_probe_event, onr_probe_kind, onr_rack_port, onr_record, onr_records, onr_rule, onr_rules,
    onr_tuple, ONR_ABI, ONR_BUCKETS, ONR_CGROUP_LEVELS, ONR_FLOWS, ONR_KEYS, ONR_KEY_BYTES,
    ONR_MAX_FLOWS, ONR_MAX_PEERS, ONR_MAX_QUEUES, ONR_MAX_RULES, ONR_MAX_SLOTS, ONR_NEVER_NS,
    ONR_NO_OWD, ONR_ORACK_PORT, ONR_ORACK_VERSION, ONR_SAMPLE_BYTES, ONR_THRESHOLD_OF_PEER,
};

use std::net::{IpAddr, Ipv6Addr};

impl onr_addr {
    /// As maps have it: IPv4 mapped into IPv6.
    pub fn of(addr: IpAddr) -> onr_addr {
        let mapped = match addr {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        bytemuck::cast(mapped.octets())
    }

    /// The address, IPv4 as such.
    pub fn ip(&self) -> IpAddr {
        Ipv6Addr::from(bytemuck::cast::<_, [u8; 16]>(*self)).to_canonical()
    }
}

impl onr_flow {
    /// The T above which it is held, ns, where `threshold_ns` is that of its law (law/threshold.h).
    pub fn held_above_ns(&self, threshold_ns: i64, has_guard: bool) -> i64 {
        let cfg = onr_cfg {
            guard_window_ns: has_guard.into(),
            ..onr_cfg::default()
        };
        // SAFETY: the references are valid for the call, which keeps none of them.
        unsafe { crate::raw::onr_threshold_held(&cfg, self, threshold_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernel_form() {
        for addr in ["10.1.2.3", "fd00::1"] {
            let addr: IpAddr = addr.parse().unwrap();
            assert_eq!(onr_addr::of(addr).ip(), addr);
        }
        let mapped = onr_addr::of([10, 1, 2, 3].into()).word;
        assert_eq!(mapped.map(u32::from_be), [0, 0, 0xffff, 0x0a01_0203]);
    }
}
