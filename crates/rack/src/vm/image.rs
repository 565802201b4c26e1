// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Builds the guest's initial RAM disk: the cached archive that every guest needs, then the archive of this job.
//!
//! The kernel unpacks concatenated cpio archives one after the other.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::at;
use super::vmclock;
use super::{Content, GuestFile, Job, Kernel, Vm, VmError};

/// Modules of the ports to the host, which are built into newer kernels; and of the experiments: devices, queueing
/// disciplines, filters, congestion controls.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_console",
    "veth",
    "bridge",
    "ifb",
    "sch_fq",
    "sch_fq_codel",
    "sch_netem",
    "sch_tbf",
    "sch_htb",
    "sch_red",
    "sch_codel",
    "sch_prio",
    "sch_ingress",
    "cls_bpf",
    "cls_u32",
    "cls_matchall",
    "cls_flower",
    "cls_basic",
    "act_mirred",
    "act_gact",
    "act_skbedit",
    "tcp_bbr",
    "tcp_dctcp",
    "tcp_diag",
    "8021q",
    "bonding",
    "vxlan",
    "geneve",
    "ipip",
    "sit",
];

/// Modules of the network cards, for machines that have one.
const CARD_MODULES: &[&str] = &["virtio_net"];

/// Programs of the host that guests have, beside busybox.
const PROGRAMS: &[&str] = &["bash", "ip", "tc", "ss", "ethtool"];

/// Directories that exist in a guest before `/init` starts.
const DIRECTORIES: &[&str] = &[
    "bin", "dev", "etc", "job", "modules", "out", "proc", "root", "run", "sys", "tmp",
];

/// Process 1 of the guest.
const INIT: &[u8] = include_bytes!("init.sh");

/// The end of a signed module (include/linux/module_signature.h).
const SIGNED: &[u8] = b"~Module signature appended~\n";

/// The two files the emulator boots.
pub(super) struct Image {
    pub kernel: PathBuf,
    pub initrd: Vec<u8>,
}

/// Builds the image of `job`, and reuses the archives in the machine's cache.
pub(super) fn build(vm: &Vm, job: &Job) -> Result<Image, VmError> {
    let cache = vm.cache.join("vm");
    fs::create_dir_all(&cache).map_err(at(&cache))?;
    let root = vm.cache.join("root");
    let root = if root.is_dir() { &root } else { Path::new("/") };
    let mut initrd = base(&vm.kernel, root, &cache)?;
    if !vm.cards.is_empty() {
        let mut archive = Archive::default();
        archive.modules("card", &vm.kernel.modules(CARD_MODULES)?)?;
        initrd.extend(archive.finish());
    }
    if vm.ptp_clock.is_some() {
        let mut archive = Archive::default();
        archive.modules("clock", &vm.kernel.modules(&[vmclock::MODULE])?)?;
        initrd.extend(archive.finish());
    }
    if !vm.modules.is_empty() {
        let mut archive = Archive::default();
        archive.modules("more", &vm.kernel.modules(vm.modules)?)?;
        initrd.extend(archive.finish());
    }
    initrd.extend(job_archive(job, root)?);
    Ok(Image {
        kernel: vm.kernel.bootable(&cache)?,
        initrd,
    })
}

/// Writes `bytes` to `path` atomically.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), VmError> {
    let write = |dir: &Path| {
        let mut part = tempfile::NamedTempFile::new_in(dir)?;
        part.write_all(bytes)?;
        part.persist(path).map(drop).map_err(|e| e.error)
    };
    write(path.parent().unwrap_or(Path::new("."))).map_err(at(path))
}

/// The archive that all guests of `kernel` share: `/init`, programs, modules. Its name in `cache` has a
/// digest of its content.
fn base(kernel: &Kernel, root: &Path, cache: &Path) -> Result<Vec<u8>, VmError> {
    let programs: Vec<PathBuf> = ["busybox"]
        .iter()
        .chain(PROGRAMS)
        .map(|name| program_in(root, name))
        .collect::<Result<_, _>>()?;
    let modules = kernel.modules(MODULES)?;
    let mut hasher = DefaultHasher::new();
    INIT.hash(&mut hasher);
    for file in programs.iter().chain(&modules) {
        let metadata = fs::metadata(file).map_err(at(file))?;
        (
            file,
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        )
            .hash(&mut hasher);
    }
    let kept = cache.join(format!("base-{:016x}.cpio", hasher.finish()));
    if let Ok(archive) = fs::read(&kept) {
        return Ok(archive);
    }
    let archive = base_archive(root, &programs, &modules)?;
    write_whole(&kept, &archive)?;
    Ok(archive)
}

/// Makes the archive of [`base`]; the first of `programs` is busybox.
fn base_archive(
    root: &Path,
    programs: &[PathBuf],
    modules: &[PathBuf],
) -> Result<Vec<u8>, VmError> {
    let mut archive = Archive::of(root);
    for name in DIRECTORIES {
        archive.directory(name);
    }
    archive.file("init", 0o755, INIT);
    for program in programs {
        archive.host_file(
            program,
            &Path::new("/bin").join(program.file_name().unwrap_or_default()),
        )?;
    }
    // This host's busybox, because it cannot run one for another processor: both are Debian's.
    for applet in run_text(Command::new("busybox").arg("--list"))?.lines() {
        archive.symlink(
            &format!("bin/{applet}"),
            if applet == "sh" { "bash" } else { "busybox" },
        );
    }
    archive.modules("", modules)?;
    Ok(archive.finish())
}

/// The archive of one job: its command and files.
fn job_archive(job: &Job, root: &Path) -> Result<Vec<u8>, VmError> {
    let mut archive = Archive::of(root);
    let words: Vec<String> = job.command.iter().map(|word| quote(word)).collect();
    archive.file(
        "job/command",
        0o644,
        format!("exec {}\n", words.join(" ")).as_bytes(),
    );
    for GuestFile { path, content } in &job.files {
        match content {
            Content::Bytes(bytes) => archive.file(&relative(path), 0o644, bytes),
            Content::Host(host) => archive.host_file(host, path)?,
        }
    }
    Ok(archive.finish())
}

/// A module ready to load: decompressed, and without its signature, whose check would cost the
/// guest 0.1 s for each module.
fn module(file: &Path) -> Result<Vec<u8>, VmError> {
    let bytes = fs::read(file).map_err(at(file))?;
    let mut elf = Vec::new();
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => lzma_rs::xz_decompress(&mut bytes.as_slice(), &mut elf).map_err(|e| {
            VmError::BadKernel {
                path: file.to_owned(),
                reason: format!("{e:?}"),
            }
        })?,
        Some("ko") => elf = bytes,
        _ => {
            return Err(VmError::BadKernel {
                path: file.to_owned(),
                reason: "module compressed by other than xz".into(),
            })
        }
    }
    elf.truncate(unsigned_len(&elf));
    Ok(elf)
}

/// Length of a module without the signature, its 12-byte descriptor and the closing mark.
fn unsigned_len(elf: &[u8]) -> usize {
    let Some(descriptor_end) = elf.strip_suffix(SIGNED).map(<[u8]>::len) else {
        return elf.len();
    };
    let Some(length) = elf[..descriptor_end].last_chunk::<4>() else {
        return elf.len();
    };
    descriptor_end.saturating_sub(12 + u32::from_be_bytes(*length) as usize)
}

/// A cpio archive in the making; knows which paths it has.
#[derive(Default)]
struct Archive {
    /// The system whose libraries its programs load.
    root: PathBuf,
    bytes: Vec<u8>,
    paths: BTreeSet<String>,
}

impl Archive {
    fn of(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            ..Self::default()
        }
    }

    fn directory(&mut self, path: &str) {
        self.entry(path, 0o040_755, &[]);
    }

    fn symlink(&mut self, path: &str, target: &str) {
        self.entry(path, 0o120_777, target.as_bytes());
    }

    fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entry(path, 0o100_000 | mode, content);
    }

    /// Adds modules, which the guest loads in the order of their names: `prefix`, then a number.
    fn modules(&mut self, prefix: &str, files: &[PathBuf]) -> Result<(), VmError> {
        for (position, file) in files.iter().enumerate() {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let name = name.split(".ko").next().unwrap_or_default();
            let path = format!("modules/{prefix}{position:02}-{name}.ko");
            self.file(&path, 0o644, &module(file)?);
        }
        Ok(())
    }

    /// Copies a host file and, if it is a dynamic program, the libraries it loads.
    fn host_file(&mut self, host: &Path, guest: &Path) -> Result<(), VmError> {
        let content = fs::read(host).map_err(at(host))?;
        let mode = fs::metadata(host).map_err(at(host))?.permissions().mode() & 0o777;
        self.file(&relative(guest), mode, &content);
        if content.starts_with(b"\x7fELF") {
            for library in libraries(host, &self.root)? {
                let path = relative(library.strip_prefix(&self.root).unwrap_or(&library));
                if !self.paths.contains(&path) {
                    let content = fs::read(&library).map_err(at(&library))?;
                    self.file(&path, 0o755, &content);
                }
            }
        }
        Ok(())
    }

    /// Adds an entry unless its path is taken, and the directories above it.
    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        if !self.paths.insert(path.to_owned()) {
            return;
        }
        if let Some((parent, _)) = path.rsplit_once('/') {
            if !self.paths.contains(parent) {
                self.directory(parent);
            }
        }
        let size = u32::try_from(content.len()).expect("a file of the guest is below 4 GiB");
        let builder = cpio::NewcBuilder::new(path)
            .mode(mode)
            .ino(self.paths.len() as u32)
            .nlink(1);
        let mut writer = builder.write(&mut self.bytes, size);
        writer
            .write_all(content)
            .and_then(|()| writer.finish().map(drop))
            .expect("a Vec takes every byte");
    }

    fn finish(mut self) -> Vec<u8> {
        cpio::newc::trailer(&mut self.bytes).expect("a Vec takes every byte");
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }
}

/// Directories of programs and of libraries in a system for another processor. In the later ones of programs there are
/// links to the former ones, which would lead to this host's programs.
const PROGRAMS_IN: [&str; 4] = ["bin", "sbin", "usr/bin", "usr/sbin"];
const LIBRARIES_IN: [&str; 2] = ["lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"];

/// Path of a program of the system `root`.
fn program_in(root: &Path, name: &str) -> Result<PathBuf, VmError> {
    if root == Path::new("/") {
        return find_program(name);
    }
    file_in(root, &PROGRAMS_IN, name)
}

/// The file in the first of these directories that has it.
fn file_in(root: &Path, directories: &[&str], name: &str) -> Result<PathBuf, VmError> {
    let candidates = directories.iter().map(|dir| root.join(dir).join(name));
    let found = candidates.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| at(&root.join(name))(std::io::ErrorKind::NotFound.into()))
}

/// Path of a host program, `/usr/sbin` included: a user's `PATH` may lack it.
pub(super) fn find_program(name: &str) -> Result<PathBuf, VmError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| VmError::NoProgram {
            program: name.to_owned(),
            source: std::io::ErrorKind::NotFound.into(),
        })
}

/// Paths of the libraries and the loader in `root` that `program` needs; none if it is static.
fn libraries(program: &Path, root: &Path) -> Result<Vec<PathBuf>, VmError> {
    if root != Path::new("/") {
        let mut found = Vec::new();
        add_libraries_in(root, program, &mut found)?;
        return Ok(found);
    }
    let output = Command::new("ldd").arg(program).output();
    let output = output.map_err(|source| VmError::NoProgram {
        program: "ldd".into(),
        source,
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Lines read "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x..)" or "/lib64/ld-linux-x86-64.so.2 (0x..)".
    Ok(text
        .split_whitespace()
        .filter(|word| word.starts_with('/') && !word.ends_with(':'))
        .map(PathBuf::from)
        .collect())
}

/// As `ldd`, which would run the program's own loader, does.
fn add_libraries_in(root: &Path, program: &Path, found: &mut Vec<PathBuf>) -> Result<(), VmError> {
    let text = run_text(
        Command::new("readelf")
            .args(["-W", "-l", "-d"])
            .arg(program),
    )?;
    // Lines read "[Requesting program interpreter: /lib/ld-linux-aarch64.so.1]" or "(NEEDED) Shared library: [libc.so.6]".
    for line in text.lines() {
        let library = if let Some((_, path)) = line.split_once("interpreter: /") {
            root.join(path.trim_end_matches(']'))
        } else if let Some((_, name)) = line.split_once("Shared library: [") {
            file_in(root, &LIBRARIES_IN, name.trim_end_matches(']'))?
        } else {
            continue;
        };
        if !found.contains(&library) {
            found.push(library.clone());
            add_libraries_in(root, &library, found)?;
        }
    }
    Ok(())
}

/// Standard output of a host command.
fn run_text(command: &mut Command) -> Result<String, VmError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|source| VmError::NoProgram { program, source })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Path of an archive entry: the guest's without the leading slash.
fn relative(guest: &Path) -> String {
    guest.to_string_lossy().trim_start_matches('/').to_owned()
}

/// One word of a shell command.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two machines that start on a fresh checkout write the shared archive at the same time.
    #[test]
    fn a_file_that_threads_write_at_once_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base");
        let bytes = vec![7; 1 << 20];
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    write_whole(&path, &bytes).unwrap();
                    assert_eq!(fs::read(&path).unwrap(), bytes);
                });
            }
        });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_signature_is_cut_off_and_nothing_else() {
        let mut signed = b"module".to_vec();
        signed.extend([9; 100]);
        signed.extend([0; 8]);
        signed.extend(100u32.to_be_bytes());
        signed.extend(SIGNED);
        assert_eq!(unsigned_len(&signed), 6);
        assert_eq!(unsigned_len(b"module"), 6);
        assert_eq!(unsigned_len(SIGNED), SIGNED.len());
    }

    #[test]
    fn a_quoted_word_stays_one_word() {
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn an_archive_has_every_path_once_and_parents_first() {
        let mut archive = Archive::default();
        archive.file("a/b/c", 0o644, b"first");
        archive.file("a/b/c", 0o644, b"second");
        archive.file("a/d", 0o644, b"");
        let bytes = archive.finish();
        let mut rest = bytes.as_slice();
        let mut found = Vec::new();
        loop {
            let mut reader = cpio::NewcReader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let mut content = String::new();
            std::io::Read::read_to_string(&mut reader, &mut content).unwrap();
            found.push((reader.entry().name().to_owned(), content));
            rest = reader.finish().unwrap();
        }
        let found: Vec<_> = found
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_str()))
            .collect();
        assert_eq!(
            found,
            [("a", ""), ("a/b", ""), ("a/b/c", "first"), ("a/d", "")]
        );
    }
}
