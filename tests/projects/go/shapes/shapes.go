// Package shapes knows what has an area.
package shapes

// Shape is what has an area.
type Shape interface {
	Area() float64
}

// Total is the sum of all areas.
func Total(shapes []Shape) float64 {
	sum := 0.0
	for _, shape := range shapes {
		sum += shape.Area()
	}
	return sum
}
