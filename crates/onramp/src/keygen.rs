// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp keygen`: makes key files, and changes the keys of one.
use std::path::PathBuf;

use anyhow::Result;
use onramp_clock::keygen::{add, create, remove, sign_with};

pub const EXAMPLES: &str = "\
Example: onramp keygen /etc/onramp/keys
To rotate keys without a gap, do each step on all hosts (copy the file, run onramp reload) before the next:
  1. onramp keygen /etc/onramp/keys --add            all accept a new key
  2. onramp keygen /etc/onramp/keys --sign-with ID   all sign with it
  3. onramp keygen /etc/onramp/keys --remove ID      none accepts the former key";

#[derive(clap::Args)]
#[group(multiple = false)]
struct Change {
    /// Add a new key, which is accepted and does not sign yet
    #[arg(long)]
    add: bool,
    /// Let this key sign; the others are still accepted
    #[arg(long, value_name = "ID")]
    sign_with: Option<u32>,
    /// Remove this key, which must not be the one that signs
    #[arg(long, value_name = "ID")]
    remove: Option<u32>,
}

#[derive(clap::Args)]
pub struct Args {
    /// The key file. Without further options it is made, with mode 600; one that exists is not overwritten
    file: PathBuf,
    #[command(flatten)]
    change: Change,
}

pub fn run(args: &Args) -> Result<()> {
    let (path, name) = (&args.file, args.file.display());
    match args.change {
        Change { add: true, .. } => {
            let id = add(path)?;
            println!("{name}: key {id} is accepted; after a reload of all hosts: --sign-with {id}");
        }
        Change {
            sign_with: Some(id),
            ..
        } => {
            sign_with(path, id)?;
            println!("{name}: key {id} signs; after a reload of all hosts, remove the former one: --remove ID");
        }
        Change {
            remove: Some(id), ..
        } => {
            remove(path, id)?;
            println!("{name}: key {id} is no longer accepted after a reload");
        }
        Change { .. } => {
            let id = create(path)?;
            println!("{name}: made with key {id}; copy it to all hosts of the fleet, mode 600, owner root");
        }
    }
    Ok(())
}
