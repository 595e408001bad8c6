// Anything that runs in a page can change `Object.prototype`: a library that merges the query of the address is enough. So the SDK never
// reads an inherited property of an object that the page or a response has made.

/** The object's own property of this name, or undefined. */
export function own<T extends object, N extends keyof T>(object: T, name: N): T[N] | undefined {
  return Object.getOwnPropertyDescriptor(object, name) && object[name];
}

/** A copy of the object's own properties that inherits nothing. */
export function bare<T extends object>(object: T): T {
  return Object.assign(Object.create(null) as T, object);
}
