// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Finds a kernel and its modules; neither fetches nor loads them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::at;
use super::VmError;

/// A kernel image and the directory of its modules (the one that holds `modules.dep`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Release, as `uname -r` prints it.
    pub release: String,
    image: PathBuf,
    modules: PathBuf,
}

impl Kernel {
    /// The newest kernel that `tools/setup` unpacked under `cache` (`.cache` of the repository).
    ///
    /// # Errors
    /// [`VmError::NoKernel`] when there is none.
    pub fn find(cache: &Path) -> Result<Self, VmError> {
        let root = cache.join("kernel/usr/lib/modules");
        let none = || VmError::NoKernel(cache.join("kernel"));
        let newest = fs::read_dir(&root)
            .map_err(|_| none())?
            .flatten()
            .map(|entry| entry.path())
            .filter(|dir| dir.join("vmlinuz").exists() && dir.join("modules.dep").exists())
            .max_by_key(|dir| {
                fs::metadata(dir.join("modules.dep"))
                    .and_then(|m| m.modified())
                    .ok()
            });
        Self::at(&newest.ok_or_else(none)?)
    }

    /// The kernel at `path`: a directory with `vmlinuz` and `modules.dep`, such an image in it,
    /// or `/boot/vmlinuz-RELEASE` with its modules in `/lib/modules/RELEASE`.
    ///
    /// # Errors
    /// [`VmError::BadKernel`] saying which of the two is missing.
    pub fn at(path: &Path) -> Result<Self, VmError> {
        let bad = |reason: &str| VmError::BadKernel {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let image = if path.is_dir() {
            path.join("vmlinuz")
        } else {
            path.to_owned()
        };
        let image = image.canonicalize().map_err(|e| bad(&e.to_string()))?;
        let home = image.parent().unwrap_or(Path::new("/"));
        let modules = match file_name(&image).strip_prefix("vmlinuz-") {
            Some(release) => home.join("../lib/modules").join(release),
            None => home.to_owned(),
        };
        let modules = modules.canonicalize().unwrap_or(modules);
        if !modules.join("modules.dep").exists() {
            return Err(bad(&format!(
                "no modules.dep in {}; depmod makes it",
                modules.display()
            )));
        }
        Ok(Self {
            release: file_name(&modules),
            image,
            modules,
        })
    }

    /// Files of the modules `names` and of all they depend on, in an order that loads.
    pub(super) fn modules(&self, names: &[&str]) -> Result<Vec<PathBuf>, VmError> {
        let read = |name: &str| {
            let path = self.modules.join(name);
            fs::read_to_string(&path).map_err(at(&path))
        };
        let dependencies = read("modules.dep")?;
        let builtin = read("modules.builtin")?;
        let mut files: Vec<PathBuf> = Vec::new();
        for name in names {
            if let Some(line) = dependencies
                .lines()
                .find(|line| stem(line.split(':').next().unwrap_or("")) == *name)
            {
                // modules.dep lists a module's dependencies nearest first: the reverse loads.
                for file in line.split([':', ' ']).filter(|word| !word.is_empty()).rev() {
                    let file = self.modules.join(file);
                    if !files.contains(&file) {
                        files.push(file);
                    }
                }
            } else if !builtin.lines().any(|line| stem(line) == *name) {
                return Err(VmError::NoModule {
                    release: self.release.clone(),
                    module: (*name).to_owned(),
                });
            }
        }
        Ok(files)
    }

    /// The image for the emulator: the uncompressed kernel where it can be had (the guest would
    /// spend 0.7 s of every boot decompressing), kept in `cache`; else the image as it is.
    pub(super) fn bootable(&self, cache: &Path) -> Result<PathBuf, VmError> {
        let plain = cache.join(format!("vmlinux-{}", self.release));
        let is_fresh = |path: &Path| {
            Some(
                fs::metadata(path).ok()?.modified().ok()?
                    >= fs::metadata(&self.image).ok()?.modified().ok()?,
            )
        };
        if is_fresh(&plain) == Some(true) {
            return Ok(plain);
        }
        let image = fs::read(&self.image).map_err(at(&self.image))?;
        let Some(elf) = payload(&image).and_then(unzstd) else {
            return Ok(self.image.clone());
        };
        super::image::write_whole(&plain, &elf)?;
        Ok(plain)
    }
}

/// The compressed kernel inside a bzImage (Documentation/arch/x86/boot.rst: `setup_sects`,
/// `payload_offset`, `payload_length`).
fn payload(image: &[u8]) -> Option<&[u8]> {
    let u32_at =
        |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let start = (usize::from(image[0x1f1]) + 1) * 512 + u32_at(0x248)?;
    image.get(start..start + u32_at(0x24c)?)
}

/// Decompresses one zstd frame that holds an ELF file.
fn unzstd(frame: &[u8]) -> Option<Vec<u8>> {
    let mut elf = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(frame)
        .ok()?
        .read_to_end(&mut elf)
        .ok()?;
    elf.starts_with(b"\x7fELF").then_some(elf)
}

/// Last component of `path`.
fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Module name of a file such as `kernel/net/sched/sch_fq.ko.xz`.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split(".ko").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(dependencies: &str, builtin: &str) -> (tempfile::TempDir, Kernel) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("7.2.12-test");
        fs::create_dir(&home).unwrap();
        fs::write(home.join("vmlinuz"), b"image").unwrap();
        fs::write(home.join("modules.dep"), dependencies).unwrap();
        fs::write(home.join("modules.builtin"), builtin).unwrap();
        let kernel = Kernel::at(&home).unwrap();
        (dir, kernel)
    }

    fn names(files: &[PathBuf]) -> Vec<&str> {
        files
            .iter()
            .map(|file| stem(file.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn a_module_loads_after_what_it_depends_on_and_once() {
        let dependencies = "net/bridge.ko.xz: net/stp.ko.xz net/llc.ko.xz\nnet/stp.ko.xz: net/llc.ko.xz\nnet/veth.ko.xz:\n";
        let (_dir, kernel) = kernel(dependencies, "");
        let files = kernel.modules(&["veth", "bridge", "stp"]).unwrap();
        assert_eq!(names(&files), ["veth", "llc", "stp", "bridge"]);
    }

    #[test]
    fn a_module_that_is_built_in_needs_no_file() {
        let (_dir, kernel) = kernel("", "kernel/net/sched/sch_fq_codel.ko\n");
        assert!(kernel.modules(&["sch_fq_codel"]).unwrap().is_empty());
    }

    #[test]
    fn a_module_the_kernel_lacks_is_named_with_the_release() {
        let (_dir, kernel) = kernel("", "");
        let error = kernel.modules(&["sch_fq"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "kernel 7.2.12-test has no module sch_fq, which the rack needs"
        );
    }

    #[test]
    fn a_cache_without_kernel_says_make_setup() {
        let dir = tempfile::tempdir().unwrap();
        let error = Kernel::find(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("make setup") && error.contains("--kernel"),
            "{error}"
        );
    }

    #[test]
    fn the_payload_of_a_bzimage_starts_after_the_setup_sectors() {
        let mut image = vec![0; 4096];
        image[0x1f1] = 2;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&100u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&4u32.to_le_bytes());
        image[1636..1640].copy_from_slice(b"zstd");
        assert_eq!(payload(&image), Some(&b"zstd"[..]));
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(payload(&image), None);
        assert_eq!(payload(b"short"), None);
    }
}
