//! Writes docs/results/table.md: `cargo run -p onramp-sim --example table > docs/results/table.md`
mod render;

fn main() {
    print!("{}", render::table());
}
