/** What the one polite region of the page says. */
let text = '';
let redraw = (): void => undefined;

export const spoken = (): string => text;

export function onSpeech(draw: () => void): void {
  redraw = draw;
}

/** Another screen begins, and what was said of the last one no longer holds. */
export const hush = (): void => void (text = '');

export function say(sentence: string): void {
  if (sentence === text) return;
  text = sentence;
  // Effects run within a rendering, which must end before the next one begins.
  queueMicrotask(redraw);
}
