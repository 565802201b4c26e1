// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp tbtcp`: configures switches for Tiny Buffer TCP.
use anyhow::{bail, Result};
use clap::Subcommand;
use onramp_cc::{Fit, Target};
use onramp_units::{Bytes, Rate, Span};

#[derive(Subcommand)]
pub enum Command {
    /// Fit the steps of a switch's RED to Tiny Buffer TCP's curve of marks, and draw both
    #[command(
        after_help = "Example: onramp tbtcp fit --rate 10Gbit/s --rtt 150us --min 138kB --max 550kB --k 2"
    )]
    Fit(FitArgs),
}

/// Options of `onramp tbtcp fit`. The defaults are those of the paper (section 6.2).
#[derive(clap::Args)]
pub struct FitArgs {
    /// Rate of the switch's port
    #[arg(long, default_value = "10 Gbit/s")]
    rate: Rate,
    /// Round-trip time without queues
    #[arg(long, default_value = "150 us")]
    rtt: Span,
    /// Queue at or below which no packet is marked; longer than the largest burst of a host
    #[arg(long, default_value = "138 kB")]
    min: Bytes,
    /// Queue above which every packet is marked
    #[arg(long, default_value = "550 kB")]
    max: Bytes,
    /// Packets that one mark takes from a window: `cc.tbtcp.k` of the hosts, 1 to 64
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    k: u32,
    /// Steps of the switch, 2 to 64
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=64))]
    steps: u32,
    /// Unit in which the switch takes the fraction, 0.001 to 0.1
    #[arg(long, default_value_t = 0.05, value_parser = unit)]
    unit: f64,
}

fn unit(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match (0.001..=0.1).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value} is not between 0.001 and 0.1")),
    }
}

pub fn run(command: &Command) -> Result<()> {
    let Command::Fit(args) = command;
    print!("{}", page(args)?);
    Ok(())
}

fn page(args: &FitArgs) -> Result<String> {
    if args.min >= args.max {
        bail!("--min is {}, not below --max {}", args.min, args.max);
    }
    let target = Target {
        min: args.min,
        max: args.max,
        bdp: args.rate.bytes_in(args.rtt),
        most_cut: args.k,
        steps: args.steps,
    };
    if target.bdp.get() == 0 {
        bail!(
            "--rate {} times --rtt {} is less than a byte",
            args.rate,
            args.rtt
        );
    }
    let fit = target.fit(args.unit);
    Ok(format!(
        "{}\n{}",
        settings(&target, &fit),
        drawing(&target, &fit)
    ))
}

/// What the switch, the hosts and a scenario are given.
fn settings(target: &Target, fit: &Fit) -> String {
    let (min, max, k) = (target.min, target.max, target.most_cut);
    let (p_max, steps) = (fit.max_fraction, target.steps);
    format!(
        "bandwidth-delay product  {}\n\
         squared error            {:.2} (at each kB from {min} to {max})\n\n\
         switch: RED, mark ECN    min {min}, max {max}, P_max {p_max:.3}\n\
         scenario                 [network.ecn]\n\
         {:25}threshold = \"{min}\"\n\
         {:25}max = \"{max}\"\n\
         {:25}max_fraction = {p_max:.3}\n\
         {:25}steps = {steps}\n\
         {:25}[cc]\n\
         {:25}tbtcp.k = {k}\n",
        target.bdp, fit.squared_error, "", "", "", "", "", ""
    )
}

/// Lines and columns of the drawing.
const LINES: u64 = 24;
const COLUMNS: f64 = 50.0;

/// Both curves: a line for each queue, `*` where the ideal curve is and `|` where the switch's is.
fn drawing(target: &Target, fit: &Fit) -> String {
    let top = target.ideal(target.max).max(fit.max_fraction);
    let column = |fraction: f64| (fraction / top * COLUMNS).round() as usize;
    let mut lines = format!("{:>10}  marked: * ideal, | switch\n", "queue");
    for line in 0..=LINES {
        let above = (target.max.get() - target.min.get()) * line / LINES;
        let queue = Bytes::new(target.min.get() + above);
        let (ideal, switch) = (target.ideal(queue), target.stepped(queue, fit.max_fraction));
        let mut row = vec![b' '; COLUMNS as usize + 1];
        row[column(switch)] = b'|';
        row[column(ideal)] = b'*';
        let row = String::from_utf8(row).expect("ASCII");
        let kb = queue.get() as f64 / 1000.0;
        lines += &format!(
            "{kb:>7.0} kB  {row}  {:>5.1} %  {:>5.1} %\n",
            100.0 * ideal,
            100.0 * switch
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        fit: FitArgs,
    }

    fn of(options: &[&str]) -> Result<String> {
        page(&Cli::try_parse_from([&["tbtcp"], options].concat())?.fit)
    }

    #[test]
    fn the_papers_switch_has_p_max_0_35_with_k_2() {
        let text = of(&[]).unwrap();
        assert!(
            text.contains("min 138 kB, max 550 kB, P_max 0.350"),
            "{text}"
        );
        assert_eq!(text.lines().filter(|line| line.contains('*')).count(), 26);
    }

    #[test]
    fn wrong_options_name_place_value_and_bound() {
        let error = |options: &[&str]| of(options).unwrap_err().to_string();
        assert_eq!(
            error(&["--min", "9MB"]),
            "--min is 9 MB, not below --max 550 kB"
        );
        assert!(error(&["--unit", "2"]).contains("2 is not between 0.001 and 0.1"));
        assert!(error(&["--k", "0"]).contains("0 is not in 1..=64"));
    }
}
