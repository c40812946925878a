import { total } from "./base.js";

export function plain() {
  return total([]);
}
