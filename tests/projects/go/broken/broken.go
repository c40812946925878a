package broken

import "example.com/shapes/shapes"

func wrong() int {
	var number int = "three"
	return shapes.Total(number)
}
