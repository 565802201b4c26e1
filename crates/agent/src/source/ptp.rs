// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A PTP hardware clock (PHC) of this host: finds and opens it, and relates its time to CLOCK_MONOTONIC.
//!
//! Does not: set the clock, or judge its readings.
use std::{
    fs::File,
    io::{self, ErrorKind},
    mem,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};
use nix::{
    libc::{self, ptp_clock_time, ptp_sys_offset_extended, ptp_sys_offset_precise},
    sys::socket::{socket, AddressFamily, SockFlag, SockType},
    time::{clock_gettime, ClockId},
};
use onramp_clock::stamps::{now_mono_ns, Ahead};

/// The most exact of so many samples is a reading.
const SAMPLES: usize = 5;
/// Attempts at a reading during which nobody sets the system clock.
const ATTEMPTS: usize = 3;
/// linux/ethtool.h
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
/// linux/posix-timers.h: the clock of a file descriptor.
const CLOCKFD: libc::clockid_t = 3;

/// Where the clock is.
#[derive(Debug, Clone)]
pub enum PhcDevice {
    /// This device file.
    File(PathBuf),
    /// The clock with which this network device stamps packets.
    NetDevice(String),
}

/// The clock read `phc_ns` when CLOCK_MONOTONIC was `mono_ns`, give or take `error_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    pub mono_ns: i64,
    pub phc_ns: i64,
    pub error_ns: i64,
}

impl Reading {
    /// What the clock is ahead of CLOCK_MONOTONIC.
    pub fn ahead_ns(&self) -> i64 {
        self.phc_ns - self.mono_ns
    }
}

/// A PTP hardware clock.
pub struct Ptp {
    place: PhcDevice,
    /// None after a reading failed: a clock that comes back may have another file.
    file: Option<(PathBuf, File)>,
    /// The kernel says in CLOCK_REALTIME when it read the device.
    wall: Ahead,
}

impl Ptp {
    /// The clock at this place, its file, and what it reads.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(place: PhcDevice) -> Result<(Ptp, PathBuf, Reading)> {
        let mut ptp = Ptp {
            place,
            file: None,
            wall: Ahead::of(ClockId::CLOCK_REALTIME),
        };
        ptp.wall.changed();
        let reading = ptp.read()?;
        let path = ptp.file.as_ref().map(|(path, _)| path.clone());
        Ok((ptp, path.unwrap_or_default(), reading))
    }

    /// What it reads now.
    ///
    /// # Errors
    /// It has gone, or does not answer.
    pub fn read(&mut self) -> Result<Reading> {
        let (path, file) = match self.file.take() {
            Some(open) => open,
            None => self.place.open()?,
        };
        let reading = self
            .sample(&file)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        self.file = Some((path, file));
        Ok(reading)
    }

    /// By the most exact means that the driver offers.
    fn sample(&mut self, file: &File) -> io::Result<Reading> {
        for _ in 0..ATTEMPTS {
            self.wall.changed();
            let Ok(sample) = precise(file).or_else(|_| extended(file)) else {
                break;
            };
            if !self.wall.changed() {
                return Ok(sample.reading(self.wall.ns(), self.wall.error_ns()));
            }
        }
        Ok(plain(file)?.reading(0, 0))
    }
}

impl PhcDevice {
    fn open(&self) -> Result<(PathBuf, File)> {
        let path = match self {
            PhcDevice::File(path) => path.clone(),
            PhcDevice::NetDevice(dev) => match clock_of(dev) {
                Ok(number) if number >= 0 => PathBuf::from(format!("/dev/ptp{number}")),
                Ok(_) => bail!(
                    "{dev} has no PTP hardware clock; name one with clock.device (ls /dev/ptp*), or use another clock.source"
                ),
                Err(error) => bail!("{dev} does not say which PTP hardware clock it has: {error}"),
            },
        };
        let file = File::open(&path).with_context(|| cannot_open(&path))?;
        Ok((path, file))
    }
}

fn cannot_open(path: &Path) -> String {
    format!(
        "{} cannot be opened; it must be a PTP hardware clock that belongs to the daemon's user (under systemd: \
         DeviceAllow=char-ptp r)",
        path.display()
    )
}

/// The clock read `phc_ns` between two readings of a clock of the kernel.
#[derive(Debug, Clone, Copy)]
struct Sample {
    before_ns: i64,
    phc_ns: i64,
    after_ns: i64,
}

impl Sample {
    /// `ahead_ns`: what that clock is ahead of CLOCK_MONOTONIC, give or take `error_ns`.
    fn reading(&self, ahead_ns: i64, error_ns: i64) -> Reading {
        let half_ns = (self.after_ns - self.before_ns) / 2;
        Reading {
            mono_ns: self.before_ns + half_ns - ahead_ns,
            phc_ns: self.phc_ns,
            error_ns: half_ns + error_ns,
        }
    }
}

fn most_exact(samples: impl Iterator<Item = Sample>) -> Option<Sample> {
    samples.min_by_key(|sample| sample.after_ns - sample.before_ns)
}

/// Device and kernel read one counter at one moment.
fn precise(file: &File) -> io::Result<Sample> {
    // SAFETY: plain numbers, for which zero is valid.
    let mut both: ptp_sys_offset_precise = unsafe { mem::zeroed() };
    // SAFETY: the request is of this structure, which lives during the call.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET_PRECISE, &mut both) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    let real_ns = ns(&both.sys_realtime);
    Ok(Sample {
        before_ns: real_ns,
        phc_ns: ns(&both.device),
        after_ns: real_ns,
    })
}

/// The driver reads the system clock around the access to the device.
fn extended(file: &File) -> io::Result<Sample> {
    // SAFETY: plain numbers, for which zero is valid.
    let mut samples: ptp_sys_offset_extended = unsafe { mem::zeroed() };
    samples.n_samples = SAMPLES as u32;
    // SAFETY: the request is of this structure, which lives during the call.
    let status = unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            libc::PTP_SYS_OFFSET_EXTENDED,
            &mut samples,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    let sample = |[before, phc, after]: &[ptp_clock_time; 3]| Sample {
        before_ns: ns(before),
        phc_ns: ns(phc),
        after_ns: ns(after),
    };
    most_exact(samples.ts[..SAMPLES].iter().map(sample))
        .ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Any driver offers this.
fn plain(file: &File) -> io::Result<Sample> {
    let clock = ClockId::from_raw((!file.as_raw_fd() << 3) | CLOCKFD);
    let sample = || {
        let before_ns = now_mono_ns();
        let read = clock_gettime(clock)?;
        Ok(Sample {
            before_ns,
            phc_ns: read.tv_sec() * 1_000_000_000 + read.tv_nsec(),
            after_ns: now_mono_ns(),
        })
    };
    let samples: io::Result<Vec<Sample>> = (0..SAMPLES).map(|_| sample()).collect();
    most_exact(samples?.into_iter()).ok_or_else(|| ErrorKind::InvalidData.into())
}

fn ns(time: &ptp_clock_time) -> i64 {
    time.sec * 1_000_000_000 + i64::from(time.nsec)
}

/// linux/ethtool.h, `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Default)]
struct Stamping {
    cmd: u32,
    so_timestamping: u32,
    phc_index: i32,
    others: [u32; 8],
}

/// The number of the clock with which a network device stamps; -1 if it has none.
fn clock_of(dev: &str) -> io::Result<i32> {
    let socket = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let mut stamping = Stamping {
        cmd: ETHTOOL_GET_TS_INFO,
        ..Stamping::default()
    };
    // SAFETY: plain numbers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let most = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..most].iter_mut().zip(dev.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut stamping).cast();
    // SAFETY: the kernel writes into `stamping`, as long as its structure of this command, which lives during the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &mut request) } {
        0 => Ok(stamping.phc_index),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_lies_in_the_middle_of_the_most_exact_sample() {
        let sample = |before_ns, after_ns| Sample {
            before_ns,
            phc_ns: 7_000,
            after_ns,
        };
        let best = most_exact([sample(0, 900), sample(1_000, 1_100)].into_iter()).unwrap();
        let reading = best.reading(500, 3);
        assert_eq!((reading.mono_ns, reading.error_ns), (550, 53));
        assert_eq!(reading.ahead_ns(), 6_450);
    }

    fn refused(place: PhcDevice) -> String {
        format!("{:#}", Ptp::open(place).err().expect("no clock"))
    }

    #[test]
    fn what_is_no_clock_is_refused_by_name() {
        let none = refused(PhcDevice::File("/dev/ptp-none".into()));
        assert!(none.contains("/dev/ptp-none cannot be opened"), "{none}");
        let other = refused(PhcDevice::File("/dev/null".into()));
        assert!(other.contains("/dev/null cannot be read"), "{other}");
    }

    /// QEMU's user emulation passes no such question on, so `make test-arm64` leaves it out.
    #[test]
    fn a_network_device_without_a_clock_is_refused_by_name() {
        let loopback = refused(PhcDevice::NetDevice("lo".to_owned()));
        assert!(
            loopback.contains("lo has no PTP hardware clock"),
            "{loopback}"
        );
        let gone = refused(PhcDevice::NetDevice("no-such-dev".to_owned()));
        assert!(gone.contains("no-such-dev does not say"), "{gone}");
    }
}
