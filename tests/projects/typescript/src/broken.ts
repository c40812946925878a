import { total } from "./base.js";

export function wrong(): number {
  const number: number = "three";
  return total(number);
}
