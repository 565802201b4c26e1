//! Prints docs/scenario.md.

fn main() {
    print!("{}", onramp_scenario::explain_markdown());
}
