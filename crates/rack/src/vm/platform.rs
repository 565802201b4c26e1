// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the processor of guests determines. Guests run programs for the processor that this program is for. The emulator
//! itself may run on another one: tools/arm64 starts this program in an emulator, too.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A machine that the emulator knows, and what its kernel must be told.
pub(super) struct Platform {
    /// The emulator's program.
    pub emulator: &'static str,
    /// The emulator's arguments: board and processor.
    pub machine: &'static [&'static str],
    /// The kernel's arguments.
    pub kernel: &'static [&'static str],
}

/// A spinning wait costs 0.5 us of host time for each 10 ns of guest time, because the emulator leaves its loop at every
/// `pause`.
const X86_64: Platform = Platform {
    emulator: "qemu-system-x86_64",
    machine: &["-machine", "pc", "-cpu", "Nehalem"],
    kernel: &[
        "console=ttyS0 tsc=reliable reboot=t",
        // A processor alone needs no lock prefixes replaced.
        "noreplace-smp",
        // The HPET is the timer: to calibrate the local APIC's, the kernel would spin for 100 ms (3 s of
        // ours). The test whether the timer's interrupt arrives spins too.
        "nolapic_timer no_timer_check",
    ],
};

/// The processor of many clouds' machines: it has the atomic instructions that the kernel's compiler of BPF uses. Its
/// counter has a tick each nanosecond, as that of x86. The emulator's random numbers in the device tree would differ from
/// run to run.
const AARCH64: Platform = Platform {
    emulator: "qemu-system-aarch64",
    machine: &[
        "-machine",
        "virt,gic-version=3,dtb-randomness=off",
        "-cpu",
        "neoverse-n1,cntfrq=1000000000",
    ],
    kernel: &["console=ttyAMA0"],
};

/// That of guests.
pub(super) const PLATFORM: Platform = if cfg!(target_arch = "aarch64") {
    AARCH64
} else {
    X86_64
};

/// The plugin without which a guest's course depends on the load of this machine (plugin/halt.c): for the machine that this
/// program is for, and for the one that compiled it.
const PLUGINS: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/halt.so")),
    include_bytes!(concat!(env!("OUT_DIR"), "/halt-host.so")),
];

/// The plugin that this emulator can load.
pub(super) fn plugin(emulator: &Path) -> std::io::Result<&'static [u8]> {
    let mut head = [0; 20];
    File::open(emulator)?.read_exact(&mut head)?;
    let fits = |plugin: &&&[u8]| elf_machine(plugin) == elf_machine(&head);
    Ok(PLUGINS.iter().find(fits).unwrap_or(&PLUGINS[0]))
}

/// The processor of an ELF file, `e_machine` of its header.
fn elf_machine(file: &[u8]) -> Option<&[u8]> {
    file.get(18..20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_gets_the_plugin_for_its_own_processor() {
        let dir = tempfile::tempdir().unwrap();
        let emulator = dir.path().join("emulator");
        for of in PLUGINS {
            std::fs::write(&emulator, of).unwrap();
            assert_eq!(elf_machine(plugin(&emulator).unwrap()), elf_machine(of));
        }
    }
}
