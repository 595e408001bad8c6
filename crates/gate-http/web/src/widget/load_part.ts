import { pause } from './flow/payment';

/** Pauses after the first failures, and after each later one. */
const PAUSES_MS = [1000, 2000];
const LAST_PAUSE_MS = 4000;
const ATTEMPTS = 4;

/** What loading a part of the script needs from the page around it. */
export interface PartOptions<T> {
  readonly load: () => Promise<T>;
  readonly mayReload: () => boolean;
  readonly reload: () => void;
}

/** Loads a part of the script, and tries again until it is there. A browser may remember a failure until the page is reloaded. */
export async function loadPart<T>({ load, mayReload, reload }: PartOptions<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await load();
    } catch {
      if (failures >= ATTEMPTS && mayReload()) reload();
      await pause(PAUSES_MS[failures - 1] ?? LAST_PAUSE_MS);
    }
  }
}
