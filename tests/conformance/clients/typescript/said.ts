// Helpers of both programs for the generated types.

/** A setting that the caller gives. */
export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

/** The body of a success; a refusal ends the program. */
export function body<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(`refused: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

/** The code of a refusal; a success ends the program. */
export function code(answer: { data?: unknown; error?: { code: string } }): string {
  if (answer.error === undefined) throw new Error(`not refused: ${JSON.stringify(answer.data)}`);
  return answer.error.code;
}

/** Asks until the answer is the last one. */
export async function until<T>(ask: () => Promise<T>, last: (answer: T) => boolean): Promise<T> {
  for (let turn = 0; turn < 100; turn++) {
    const answer = await ask();
    if (last(answer)) return answer;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error("it never came to an end");
}

export function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(`not so: ${what}`);
}
