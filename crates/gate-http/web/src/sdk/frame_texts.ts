import { frame as de } from '../languages/de.js';
import { frame as en } from '../languages/en.js';
import { frame as es } from '../languages/es.js';
import { frame as fr } from '../languages/fr.js';
import { frame as it } from '../languages/it.js';
import type { Language } from '../languages/list.js';
import { frame as nl } from '../languages/nl.js';
import { bare } from './own.js';

export type FrameTexts = typeof en;

/** Texts around the frame, by language. */
const FRAME_TEXTS: Record<string, FrameTexts> = bare({
  en,
  de,
  fr,
  es,
  it,
  nl,
} satisfies Record<Language, FrameTexts>);

/** Texts in the first language that the widget speaks. The whole language subtag counts: `frr` and `den` are neither French nor German. */
export function frameTexts(locale: string | undefined): FrameTexts {
  const spoken = [locale ?? '', ...navigator.languages].map(
    (tag) => FRAME_TEXTS[tag.toLowerCase().split(/[-_]/)[0] ?? ''],
  );
  return spoken.find(Boolean) ?? en;
}
