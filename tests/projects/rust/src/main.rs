mod broken;

use shapes::{total, Shape, Square, Tile};

fn report(all: &[&dyn Shape]) -> String {
    let text = "Größe 📏"; let size = total(all);
    format!("{text}: {size}")
}

fn main() {
    println!("{}", report(&[&Square { side: 2.0 }, &Tile]));
    println!("{}", total(&[]));
}
