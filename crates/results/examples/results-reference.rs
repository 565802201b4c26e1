//! Prints docs/results.md.

fn main() {
    print!("{}", onramp_results::explain_markdown());
}
