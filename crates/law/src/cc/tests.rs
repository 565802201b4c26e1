// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
mod rapid;
mod tbtcp;
mod timely;
