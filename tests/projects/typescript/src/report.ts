import { total, type Shape } from "./base.js";
import { Square, Tile } from "./square.js";

export function report(shapes: Shape[]): string {
  const text = "Größe 📏"; const size = total(shapes);
  return `${text}: ${size}`;
}

export function main(): void {
  console.log(report([new Square(2), new Tile(3)]));
  console.log(total([]));
}
