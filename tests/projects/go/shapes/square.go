package shapes

// Square has four equal sides.
type Square struct {
	Side float64
}

// Area of the square.
func (s Square) Area() float64 {
	return s.Side * s.Side
}

// Tile is a square of one.
type Tile struct {
	Square
}

// Area of the tile.
func (t *Tile) Area() float64 {
	return 1
}
