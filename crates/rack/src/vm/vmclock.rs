// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A PTP hardware clock for a guest. The guest's kernel computes its time from the processor's counter by a page of memory,
//! and finds the page by an ACPI table ("vmclock", linux/vmclock-abi.h). The emulator has no such device: it loads page and
//! table, and the kernel leaves the page alone.

use std::{fs, path::Path};

use super::{error::at, VmError};

/// Physical address of the page: above the kernel, below the initial RAM disk.
pub const PAGE: u64 = 0x1000_0000;
/// Size of the page.
pub const PAGE_BYTES: usize = 4096;
/// The kernel's module of it.
pub(super) const MODULE: &str = "ptp_vmclock";

/// A counter of 1 GHz, which the emulator's is.
const TICKS_PER_S: f64 = 1e9;
/// 2^64: a second in units of the page.
const SECOND: f64 = 18_446_744_073_709_551_616.0;

/// What the page says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PtpClock {
    /// Time at the start of the machine, ns since 1970, TAI.
    pub start_ns: u64,
    /// Growth of the difference to the counter, ns per ns.
    pub drift: f64,
    /// If not, the kernel refuses to read it.
    pub is_reliable: bool,
}

impl PtpClock {
    /// The page. `edition` is even; another one says that the page has changed.
    pub fn page(&self, edition: u32) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"VCLK");
        put(4, &(PAGE_BYTES as u32).to_le_bytes());
        put(8, &1u16.to_le_bytes()); // version
        put(10, &[1, 1]); // the counter is the TSC, the time TAI
        put(12, &edition.to_le_bytes());
        put(24, &1u64.to_le_bytes()); // the offset of TAI, 0, is valid
        put(34, &[if self.is_reliable { 2 } else { 4 }]);
        put(
            48,
            &((SECOND / TICKS_PER_S * (1.0 + self.drift)) as u64).to_le_bytes(),
        );
        put(72, &(self.start_ns / 1_000_000_000).to_le_bytes());
        let rest = (self.start_ns % 1_000_000_000) as f64 / 1e9;
        put(80, &((SECOND * rest) as u64).to_le_bytes());
        page
    }
}

/// Reserves the page. A blank comes first.
pub(super) fn kernel_argument() -> String {
    format!(" memmap={PAGE_BYTES}${PAGE:#x}")
}

/// Arguments of the emulator, which reads files in `dir`.
pub(super) fn arguments(clock: &PtpClock, dir: &Path) -> Result<[String; 4], VmError> {
    let write = |name: &str, bytes: Vec<u8>| {
        let path = dir.join(name);
        fs::write(&path, bytes).map_err(at(&path))?;
        Ok(path)
    };
    let page = write("ptp_page", clock.page(0))?;
    let table = write("ptp_table", table())?;
    Ok([
        "-device".to_owned(),
        format!("loader,file={},addr={PAGE:#x},force-raw=on", page.display()),
        "-acpitable".to_owned(),
        format!("sig=SSDT,rev=2,data={}", table.display()),
    ])
}

/// The body of an ACPI table (SSDT): a device AMZNC10C in \_SB whose memory is the page. A length counts itself.
pub(super) fn table() -> Vec<u8> {
    let package = |head: &[u8], content: Vec<u8>| {
        let length = content.len() as u8 + 1;
        assert!(length < 64, "longer packages have longer lengths");
        [head, &[length], &content].concat()
    };
    let named = |name: &[u8; 4], value: Vec<u8>| [&[0x08][..], name, &value].concat();
    let id = named(b"_HID", b"\x0dAMZNC10C\0".to_vec());
    let (address, length) = (
        (PAGE as u32).to_le_bytes(),
        (PAGE_BYTES as u32).to_le_bytes(),
    );
    // Memory32Fixed, writable; and the end tag.
    let memory = [&[0x86, 9, 0, 1][..], &address, &length, &[0x79, 0]].concat();
    let buffer = [&[0x0a, memory.len() as u8][..], &memory].concat();
    let resources = named(b"_CRS", package(&[0x11], buffer));
    let device = package(&[0x5b, 0x82], [&b"VCLK"[..], &id, &resources].concat());
    package(&[0x10], [&b"\\_SB_"[..], &device].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_period_of_its_drift_and_a_time() {
        let clock = PtpClock {
            start_ns: 7_500_000_000,
            drift: 1e-3,
            is_reliable: true,
        };
        let page = clock.page(4);
        let at = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
        assert_eq!((at(72), at(80)), (7, 1 << 63));
        assert!((at(48) as f64 * 1e9 / SECOND - 1.001).abs() < 1e-9);
        assert_eq!(&page[..4], b"VCLK");
        assert_eq!(page[12], 4);
    }

    #[test]
    fn lengths_of_the_table_cover_what_is_in_them() {
        let table = table();
        assert_eq!(usize::from(table[1]), table.len() - 1, "the scope");
        let device = table.windows(2).position(|pair| pair == [0x5b, 0x82]);
        let at = device.unwrap() + 2;
        assert_eq!(usize::from(table[at]), table.len() - at, "the device");
        assert_eq!(table[table.len() - 2..], [0x79, 0]);
    }
}
