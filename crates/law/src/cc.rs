// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The arithmetic of transports, law/cc/*.h: the same lines that the kernel runs. Rates are in bytes a second, times in
//! nanoseconds; the headers have the rest, with equations and sources. Written by examples/law-bindings, from functions that
//! are marked ONR_PUBLIC.
//!
//! A connection's state begins with its default. A configuration is plain bytes; `onramp-cc` makes it of a transport's
//! parameters.

include!("../generated/cc.rs");

#[cfg(test)]
mod tests;
