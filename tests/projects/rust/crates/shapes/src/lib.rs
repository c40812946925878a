//! What has an area.

mod square;

pub use square::{Square, Tile};

/// What has an area.
pub trait Shape {
    fn area(&self) -> f64;
}

/// The sum of all areas.
pub fn total(shapes: &[&dyn Shape]) -> f64 {
    shapes.iter().map(|shape| shape.area()).sum()
}
