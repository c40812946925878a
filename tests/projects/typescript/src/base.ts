/** What has an area. */
export interface Shape {
  area(): number;
}

/** The sum of all areas. */
export function total(shapes: Shape[]): number {
  return shapes.reduce((sum, shape) => sum + shape.area(), 0);
}
