//! Writes docs/trace.md.
fn main() {
    print!("{}", onramp_trace::reference());
}
