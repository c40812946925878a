import { total } from "./base.js";

export const View = () => String(total([]));
