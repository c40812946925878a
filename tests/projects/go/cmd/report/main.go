// Command report prints sums.
package main

import (
	"fmt"

	"example.com/shapes/shapes"
)

func report(all []shapes.Shape) string {
	text := "Größe 📏"; size := shapes.Total(all)
	return fmt.Sprintf("%s: %f", text, size)
}

func main() {
	fmt.Println(report([]shapes.Shape{shapes.Square{Side: 2}, &shapes.Tile{}}))
	fmt.Println(shapes.Total(nil))
}
