use crate::Shape;

/// Four equal sides.
pub struct Square {
    pub side: f64,
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.side * self.side
    }
}

/// A square of one.
pub struct Tile;

impl Shape for Tile {
    fn area(&self) -> f64 {
        1.0
    }
}
