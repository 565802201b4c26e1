// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The two tcx programs of a device, each the first of its chain: a program before them can end the chain, and
//! then OR-ACKs are neither made nor consumed.
use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use anyhow::{anyhow, Context, Result};

use super::pins::Pins;

/// Most programs of a chain that are read.
const MOST: usize = 64;

/// The attached programs. Dropping it detaches them, unless they are pinned.
pub struct Tcx {
    ifindex: i32,
    chains: [Chain; 2],
}

struct Chain {
    program: OwnedFd,
    id: u32,
    direction: libbpf_sys::bpf_attach_type,
    /// None only while the program moves.
    link: Option<OwnedFd>,
}

impl Tcx {
    /// Attaches both programs: in the links that a former daemon pinned, so that no packet passes between its programs
    /// and these; else in front of all others.
    ///
    /// # Errors
    /// The kernel refuses: it is older than 6.6, or privileges lack.
    pub fn attach(
        ifindex: i32,
        ingress: BorrowedFd<'_>,
        egress: BorrowedFd<'_>,
        pins: Option<&Pins>,
    ) -> Result<Self> {
        let chain = |program: BorrowedFd<'_>, direction| -> Result<Chain> {
            let pinned = pins.and_then(|pins| pins.of_any_programs(link_pin(direction)));
            let link = match pinned.filter(|link| replace_program(link.as_fd(), program)) {
                Some(link) => link,
                None => attach_first(ifindex, program, direction)?,
            };
            Ok(Chain {
                link: Some(link),
                program: program.try_clone_to_owned()?,
                id: id_of(program)?,
                direction,
            })
        };
        let ingress = chain(ingress, libbpf_sys::BPF_TCX_INGRESS)?;
        let egress = chain(egress, libbpf_sys::BPF_TCX_EGRESS)?;
        Ok(Self {
            ifindex,
            chains: [ingress, egress],
        })
    }

    /// The pinned programs, if both are still attached.
    ///
    /// # Errors
    /// The kernel does not describe a program.
    pub fn kept(ifindex: i32, pins: &Pins) -> Result<Option<Self>> {
        let chain = |direction| -> Result<Option<Chain>> {
            let link = pins.object(link_pin(direction));
            let link = link.filter(|link| device_of(link.as_fd()) == Some(ifindex as u32));
            let (Some(link), Some(program)) = (link, pins.object(program_pin(direction))) else {
                return Ok(None);
            };
            Ok(Some(Chain {
                id: id_of(program.as_fd())?,
                link: Some(link),
                program,
                direction,
            }))
        };
        let ingress = chain(libbpf_sys::BPF_TCX_INGRESS)?;
        let chains = ingress.zip(chain(libbpf_sys::BPF_TCX_EGRESS)?);
        Ok(chains.map(|(ingress, egress)| Self {
            ifindex,
            chains: [ingress, egress],
        }))
    }

    /// Pins programs and links for the next daemon.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn pin(&self, pins: &Pins) -> Result<()> {
        for chain in &self.chains {
            pins.pin(program_pin(chain.direction), chain.program.as_fd())?;
            if let Some(link) = &chain.link {
                pins.pin(link_pin(chain.direction), link.as_fd())?;
            }
        }
        Ok(())
    }

    /// The ids of the programs before ours, in either chain.
    ///
    /// # Errors
    /// The kernel does not list the programs.
    pub fn before_us(&self) -> Result<Vec<u32>> {
        let mut before = vec![];
        for chain in &self.chains {
            let all = programs(self.ifindex, chain.direction)?;
            before.extend(all.into_iter().take_while(|id| *id != chain.id));
        }
        Ok(before)
    }

    /// False once the device has gone: the kernel has ended the links.
    pub fn is_attached(&self) -> bool {
        let mut links = self.chains.iter().filter_map(|chain| chain.link.as_ref());
        links.all(|link| device_of(link.as_fd()) != Some(0))
    }

    /// Puts both programs in front of all others again. For the moment in between, neither is attached.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn move_to_front(&mut self) -> Result<()> {
        for chain in &mut self.chains {
            if let Some(link) = chain.link.take() {
                detach(link.as_fd()); // closing it is not enough if it is pinned
            }
            let program = chain.program.as_fd();
            chain.link = Some(attach_first(self.ifindex, program, chain.direction)?);
        }
        Ok(())
    }
}

/// The name of the pin of a link.
fn link_pin(direction: libbpf_sys::bpf_attach_type) -> &'static str {
    match direction {
        libbpf_sys::BPF_TCX_INGRESS => "link_ingress",
        _ => "link_egress",
    }
}

/// The name of the pin of a program.
fn program_pin(direction: libbpf_sys::bpf_attach_type) -> &'static str {
    match direction {
        libbpf_sys::BPF_TCX_INGRESS => "ingress",
        _ => "egress",
    }
}

/// Gives a link another program, atomically. False if its device has gone.
fn replace_program(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> bool {
    // SAFETY: both descriptors are open, and no options are needed.
    let error = unsafe {
        libbpf_sys::bpf_link_update(link.as_raw_fd(), program.as_raw_fd(), std::ptr::null())
    };
    error == 0
}

fn detach(link: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open. It fails only if the device has gone, and the link is detached then.
    unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) };
}

/// The device that a link is attached to; 0 if that has gone, none if the kernel does not say it.
pub fn device_of(link: BorrowedFd<'_>) -> Option<u32> {
    let mut info = MaybeUninit::<libbpf_sys::bpf_link_info>::zeroed();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` has `size` bytes.
    let error = unsafe {
        libbpf_sys::bpf_link_get_info_by_fd(link.as_raw_fd(), info.as_mut_ptr(), &mut size)
    };
    // SAFETY: all zeros is a value of it, and the kernel has written that of a tcx link, which On-Ramp pins alone.
    (error == 0).then(|| unsafe { info.assume_init().__bindgen_anon_1.tcx.ifindex })
}

/// Attaches a program in front of all others.
///
/// # Errors
/// The kernel refuses: it is older than 6.6, or privileges lack.
pub fn attach_first(
    ifindex: i32,
    program: BorrowedFd<'_>,
    direction: libbpf_sys::bpf_attach_type,
) -> Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as u64,
        flags: libbpf_sys::BPF_F_BEFORE,
        ..Default::default()
    };
    // SAFETY: the options are valid for the call.
    let fd =
        unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex, direction, &options) };
    if fd < 0 {
        return Err(anyhow!(std::io::Error::from_raw_os_error(-fd)))
            .context("cannot attach the tcx programs, which need Linux >= 6.6");
    }
    // SAFETY: a new descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The ids of a chain's programs, in the order in which they run.
fn programs(ifindex: i32, direction: libbpf_sys::bpf_attach_type) -> Result<Vec<u32>> {
    let mut ids = [0u32; MOST];
    let mut query = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as u64,
        prog_ids: ids.as_mut_ptr(),
        ..Default::default()
    };
    query.__bindgen_anon_1.prog_cnt = MOST as u32;
    // SAFETY: the query and the buffer that it names are valid for the call.
    let error = unsafe { libbpf_sys::bpf_prog_query_opts(ifindex, direction, &mut query) };
    if error < 0 {
        return Err(anyhow!(std::io::Error::from_raw_os_error(-error)))
            .context("cannot list the tcx programs of the device");
    }
    // SAFETY: the kernel has written the number of programs.
    let count = unsafe { query.__bindgen_anon_1.prog_cnt } as usize;
    Ok(ids[..count.min(MOST)].to_vec())
}

/// The names of all programs in both chains of a device, of ours too.
///
/// # Errors
/// The kernel does not list the programs.
pub fn names(ifindex: i32) -> Result<Vec<String>> {
    let directions = [libbpf_sys::BPF_TCX_INGRESS, libbpf_sys::BPF_TCX_EGRESS];
    let mut names = vec![];
    for direction in directions {
        let ids = programs(ifindex, direction)?;
        names.extend(ids.into_iter().map(name_of));
    }
    Ok(names)
}

/// The name of a program, or its id if it has none or the kernel does not say it.
fn name_of(id: u32) -> String {
    // SAFETY: the function takes and returns integers.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    let name = (fd >= 0).then(|| {
        // SAFETY: a new descriptor, which nobody else owns.
        let program = unsafe { OwnedFd::from_raw_fd(fd) };
        let name = info_of(program.as_fd()).ok()?.name;
        let bytes = name.iter().map(|c| *c as u8).take_while(|c| *c != 0);
        Some(String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned())
    });
    let name = name.flatten().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| format!("program {id}"))
}

fn id_of(program: BorrowedFd<'_>) -> Result<u32> {
    Ok(info_of(program)?.id)
}

fn info_of(program: BorrowedFd<'_>) -> Result<libbpf_sys::bpf_prog_info> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` has `size` bytes.
    let error =
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut size) };
    if error < 0 {
        return Err(anyhow!(std::io::Error::from_raw_os_error(-error)))
            .context("cannot read what a BPF program is");
    }
    Ok(info)
}
