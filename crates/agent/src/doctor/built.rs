// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the kernel was built with: its configuration, and the lists of its modules.
use std::{path::Path, process::Command};

/// Where a part of the kernel is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// It is in the kernel, or a module of it is here.
    Here,
    /// The kernel has it, or the host may have it; this file system does not show it.
    Elsewhere,
    /// The kernel was built without it, as this file says.
    NotBuilt(String),
    /// No file says it.
    Unknown,
}

/// The configuration of the kernel.
pub struct Options {
    file: String,
    text: String,
}

impl Options {
    /// Reads /proc/config.gz, or the file that distributions install beside the kernel.
    pub fn read(release: &str) -> Option<Options> {
        let own = "/proc/config.gz";
        if let Some(text) = unpacked(own) {
            let file = own.to_owned();
            return Some(Options { file, text });
        }
        let beside = [
            format!("/boot/config-{release}"),
            format!("/lib/modules/{release}/config"),
        ];
        let mut found = beside.into_iter().filter_map(|file| {
            let text = text(&file)?;
            Some(Options { file, text })
        });
        found.next()
    }

    /// `y` or `m`; nothing if the kernel was built without it.
    fn value(&self, option: &str) -> Option<&str> {
        let mut lines = self.text.lines();
        lines.find_map(|line| line.strip_prefix(option)?.strip_prefix('='))
    }
}

/// A file, without the blanks at its ends.
pub(super) fn text(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// A compressed file as text.
fn unpacked(file: &str) -> Option<String> {
    if !Path::new(file).exists() {
        return None;
    }
    let output = Command::new("gzip").args(["-dc", file]).output().ok()?;
    let is_whole = output.status.success();
    is_whole.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The file that lists the modules which can be loaded.
pub const LOADABLE: &str = "modules.dep";

/// Where the qdisc fq is. `lists` are the texts of modules.builtin and of [`LOADABLE`], where they are.
pub fn fq(lists: [Option<&str>; 2], options: Option<&Options>) -> Part {
    let [_, loadable] = lists;
    let has_it = |list: &&str| list.contains("/sch_fq.ko");
    if lists.iter().flatten().any(has_it) {
        return Part::Here;
    }
    match options {
        Some(options) => match options.value("CONFIG_NET_SCH_FQ") {
            Some("y") => Part::Here,
            Some(_) => Part::Elsewhere,
            None => Part::NotBuilt(options.file.clone()),
        },
        None if loadable.is_some() => Part::NotBuilt(LOADABLE.to_owned()),
        None => Part::Unknown,
    }
}

/// Where the description of the kernel's types is. `hides_it`: this is a container, or it has no /sys.
pub fn types(is_here: bool, hides_it: bool, options: Option<&Options>) -> Part {
    match options {
        _ if is_here => Part::Here,
        Some(options) if options.value("CONFIG_DEBUG_INFO_BTF").is_none() => {
            Part::NotBuilt(options.file.clone())
        }
        Some(_) => Part::Elsewhere,
        None if hides_it => Part::Elsewhere,
        None => Part::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        Options {
            file: "/proc/config.gz".to_owned(),
            text: text.to_owned(),
        }
    }

    const WITHOUT: &str = "# CONFIG_NET_SCH_FQ is not set\nCONFIG_NET_SCH_FQ_CODEL=y\n";

    #[test]
    fn fq_is_where_lists_and_configuration_say() {
        let not_built = |file: &str| Part::NotBuilt(file.to_owned());
        let of_configuration = |text: &str| fq([None, None], Some(&options(text)));
        let listed = Some("kernel/net/sched/sch_fq.ko.xz: kernel/x.ko");
        let others = Some("kernel/net/sched/sch_fq_codel.ko:\n");
        assert_eq!(of_configuration(WITHOUT), not_built("/proc/config.gz"));
        assert_eq!(of_configuration("CONFIG_NET_SCH_FQ=y\n"), Part::Here);
        assert_eq!(of_configuration("CONFIG_NET_SCH_FQ=m\n"), Part::Elsewhere);
        assert_eq!(fq([others, listed], None), Part::Here);
        assert_eq!(fq([listed, None], Some(&options(WITHOUT))), Part::Here);
        assert_eq!(fq([others, others], None), not_built(LOADABLE));
        assert_eq!(fq([None, None], None), Part::Unknown);
    }

    #[test]
    fn types_that_a_container_hides_are_told_from_those_that_lack() {
        let with = options("CONFIG_DEBUG_INFO_BTF=y\n");
        let without = options("# CONFIG_DEBUG_INFO_BTF is not set\n");
        assert_eq!(types(true, true, None), Part::Here);
        assert_eq!(types(false, false, Some(&with)), Part::Elsewhere);
        assert_eq!(types(false, true, None), Part::Elsewhere);
        assert_eq!(types(false, false, None), Part::Unknown);
        let lacks = types(false, true, Some(&without));
        assert_eq!(lacks, Part::NotBuilt("/proc/config.gz".to_owned()));
    }
}
