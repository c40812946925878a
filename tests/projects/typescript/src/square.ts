import type { Shape } from "./base.js";

export class Square implements Shape {
  constructor(readonly side: number) {}

  area(): number {
    return this.side * this.side;
  }
}

export class Tile extends Square {
  override area(): number {
    return 1;
  }
}
